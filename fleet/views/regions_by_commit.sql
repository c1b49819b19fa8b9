-- Lines of each region's calls by commit: the mean of all recordings of it.
SELECT
  r.service,
  g.region,
  r.commit_id,
  MIN(COALESCE(r.commit_time_s, r.recorded_at_s)) AS time_s,
  COUNT(DISTINCT r.run) AS runs,
  COUNT(DISTINCT r.host) AS hosts,
  AVG(g.data_lines_64) AS data_lines,
  AVG(g.code_lines_64) AS code_lines,
  AVG(g.calls_per_second) AS calls_per_second
FROM runs r
JOIN regions g ON g.run = r.run
WHERE g.data_lines_64 IS NOT NULL
GROUP BY r.service, g.region, r.commit_id
