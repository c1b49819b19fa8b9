-- What is accessed most, over all machines: one row for each member or variable.
SELECT
  owner,
  class,
  member,
  COUNT(host) AS hosts,
  COUNT(service) AS services,
  SUM(accesses) AS accesses,
  SUM(l1_misses) AS l1_misses,
  SUM(stall_cycles) AS stall_cycles,
  SUM(sampled_weight) AS sampled_weight,
  SUM(hitm) AS hitm
FROM (
  -- Each row counts for its host and once more for its service, and its numbers with the service.
  SELECT
    m.owner,
    m.class,
    m.member,
    r.host,
    r.service,
    CASE WHEN GROUPING(r.host) = 1 THEN SUM(m.accesses) END AS accesses,
    CASE WHEN GROUPING(r.host) = 1 THEN SUM(m.l1_misses) END AS l1_misses,
    CASE WHEN GROUPING(r.host) = 1 THEN SUM(m.stall_cycles) END AS stall_cycles,
    CASE WHEN GROUPING(r.host) = 1 THEN SUM(m.sampled_weight) END AS sampled_weight,
    CASE WHEN GROUPING(r.host) = 1 THEN SUM(m.hitm) END AS hitm
  FROM runs r
  JOIN members m ON m.run = r.run
  GROUP BY GROUPING SETS ((m.owner, m.class, m.member, r.host), (m.owner, m.class, m.member, r.service))
) counted
GROUP BY owner, class, member
