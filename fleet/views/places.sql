-- On which line of 64 bytes each member begins, in each build of a service: one row for each build.
SELECT
  r.service,
  COALESCE(l.build_id, r.build_id) AS build_id,
  r.commit_id,
  MIN(COALESCE(r.commit_time_s, r.recorded_at_s)) AS time_s,
  l.type_name,
  l.member,
  MIN(CAST(FLOOR(l.offset_bits / 8.0) AS BIGINT)) AS offset_bytes,
  MIN(CAST(FLOOR(l.offset_bits / 512.0) AS BIGINT)) AS line
FROM runs r
JOIN layouts l ON l.run = r.run
WHERE l.offset_bits IS NOT NULL AND l.member <> '(anonymous)'
GROUP BY r.service, COALESCE(l.build_id, r.build_id), r.commit_id, l.type_name, l.member
