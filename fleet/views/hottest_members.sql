-- What is accessed most, over all machines: one row for each member or variable.
SELECT
  owner,
  class,
  member,
  COUNT(DISTINCT host) AS hosts,
  COUNT(DISTINCT service) AS services,
  SUM(accesses) AS accesses,
  SUM(l1_misses) AS l1_misses,
  SUM(stall_cycles) AS stall_cycles,
  SUM(sampled_weight) AS sampled_weight,
  SUM(hitm) AS hitm
FROM (
  SELECT
    m.owner,
    m.class,
    m.member,
    r.host,
    r.service,
    SUM(m.accesses) AS accesses,
    SUM(m.l1_misses) AS l1_misses,
    SUM(m.stall_cycles) AS stall_cycles,
    SUM(m.sampled_weight) AS sampled_weight,
    SUM(m.hitm) AS hitm
  FROM runs r
  JOIN members m ON m.run = r.run
  GROUP BY m.owner, m.class, m.member, r.host, r.service
) by_host
GROUP BY owner, class, member
