-- Types of more than one line whose services use different members: `overlap` is 1 when two services spread their
-- accesses alike, and 0 when they have no member in common.
WITH used AS (
  -- Beside the members' shares a row of 0 for the type, which every service that uses it has in common.
  SELECT
    service,
    type_name,
    COALESCE(member, '') AS member,
    CASE WHEN GROUPING(member) = 1 THEN 0.0 ELSE SUM(share) END AS share
  FROM member_shares
  GROUP BY GROUPING SETS ((service, type_name, member), (service, type_name))
)
SELECT
  pair.type_name,
  pair.service_a,
  pair.service_b,
  size.type_size_bytes,
  pair.overlap
FROM (
  SELECT
    a.type_name,
    a.service AS service_a,
    b.service AS service_b,
    SUM(CASE WHEN a.share < b.share THEN a.share ELSE b.share END) AS overlap
  FROM used a
  JOIN used b ON a.type_name = b.type_name AND a.member = b.member AND a.service < b.service
  GROUP BY a.type_name, a.service, b.service
) pair
JOIN (
  SELECT type_name, MAX(type_size_bytes) AS type_size_bytes
  FROM layouts
  GROUP BY type_name
) size ON size.type_name = pair.type_name
WHERE size.type_size_bytes > 64
