-- Lines of each region's calls by commit: the mean of all recordings of it.
SELECT
  service,
  region,
  commit_id,
  MIN(time_s) AS time_s,
  CAST(SUM(runs) AS BIGINT) AS runs,
  COUNT(host) AS hosts,
  SUM(data_lines) / SUM(rows_of_data) AS data_lines,
  SUM(code_lines) / SUM(rows_of_code) AS code_lines,
  SUM(calls_per_second) / SUM(rows_of_calls) AS calls_per_second
FROM (
  SELECT
    r.service,
    g.region,
    r.commit_id,
    r.host,
    MIN(COALESCE(r.commit_time_s, r.recorded_at_s)) AS time_s,
    COUNT(*) AS runs,
    SUM(g.data_lines) AS data_lines,
    SUM(g.rows_of_data) AS rows_of_data,
    SUM(g.code_lines) AS code_lines,
    SUM(g.rows_of_code) AS rows_of_code,
    SUM(g.calls_per_second) AS calls_per_second,
    SUM(g.rows_of_calls) AS rows_of_calls
  FROM runs r
  JOIN (
    SELECT
      run,
      region,
      SUM(data_lines_64) AS data_lines,
      COUNT(data_lines_64) AS rows_of_data,
      SUM(code_lines_64) AS code_lines,
      COUNT(code_lines_64) AS rows_of_code,
      SUM(calls_per_second) AS calls_per_second,
      COUNT(calls_per_second) AS rows_of_calls
    FROM regions
    WHERE data_lines_64 IS NOT NULL
    GROUP BY run, region
  ) g ON g.run = r.run
  GROUP BY r.service, g.region, r.commit_id, r.host
) by_host
GROUP BY service, region, commit_id
