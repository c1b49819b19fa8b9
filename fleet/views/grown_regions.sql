-- Regions whose calls need more lines of data than at the commit before.
SELECT
  service,
  region,
  commit_before,
  commit_id AS commit_after,
  data_lines_before,
  data_lines AS data_lines_after,
  data_lines - data_lines_before AS grown_by_lines,
  runs
FROM (
  SELECT
    c.*,
    LAG(data_lines) OVER (PARTITION BY service, region ORDER BY time_s, commit_id) AS data_lines_before,
    LAG(commit_id) OVER (PARTITION BY service, region ORDER BY time_s, commit_id) AS commit_before
  FROM regions_by_commit c
) steps
WHERE data_lines > data_lines_before
