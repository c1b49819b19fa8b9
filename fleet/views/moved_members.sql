-- Members that lie on another line of 64 bytes than in the build of the service before.
SELECT
  service,
  type_name,
  member,
  commit_before,
  commit_id AS commit_after,
  build_before,
  build_id AS build_after,
  line_before,
  line AS line_after,
  offset_before AS offset_bytes_before,
  offset_bytes AS offset_bytes_after
FROM (
  SELECT
    p.*,
    LAG(line) OVER (PARTITION BY service, type_name, member ORDER BY time_s, commit_id, build_id) AS line_before,
    LAG(offset_bytes) OVER (PARTITION BY service, type_name, member ORDER BY time_s, commit_id, build_id)
      AS offset_before,
    LAG(commit_id) OVER (PARTITION BY service, type_name, member ORDER BY time_s, commit_id, build_id)
      AS commit_before,
    LAG(build_id) OVER (PARTITION BY service, type_name, member ORDER BY time_s, commit_id, build_id) AS build_before
  FROM places p
) steps
WHERE line <> line_before
