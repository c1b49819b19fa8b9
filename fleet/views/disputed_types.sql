-- Types of more than one line whose services use different members: `overlap` is 1 when two services spread their
-- accesses alike, and 0 when they have no member in common.
SELECT
  pair.type_name,
  pair.service_a,
  pair.service_b,
  size.type_size_bytes,
  COALESCE(common.overlap, 0.0) AS overlap
FROM (
  SELECT a.type_name, a.service AS service_a, b.service AS service_b
  FROM (SELECT DISTINCT service, type_name FROM member_shares) a
  JOIN (SELECT DISTINCT service, type_name FROM member_shares) b
    ON a.type_name = b.type_name AND a.service < b.service
) pair
JOIN (
  SELECT type_name, MAX(type_size_bytes) AS type_size_bytes
  FROM layouts
  GROUP BY type_name
) size ON size.type_name = pair.type_name
LEFT JOIN (
  SELECT
    a.type_name,
    a.service AS service_a,
    b.service AS service_b,
    SUM(CASE WHEN a.share < b.share THEN a.share ELSE b.share END) AS overlap
  FROM member_shares a
  JOIN member_shares b ON a.type_name = b.type_name AND a.member = b.member AND a.service < b.service
  GROUP BY a.type_name, a.service, b.service
) common
  ON common.type_name = pair.type_name
  AND common.service_a = pair.service_a
  AND common.service_b = pair.service_b
WHERE size.type_size_bytes > 64
