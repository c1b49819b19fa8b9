-- What is accessed most, over all machines: one row for each member or variable.
SELECT
  m.owner,
  m.class,
  m.member,
  COUNT(DISTINCT r.host) AS hosts,
  COUNT(DISTINCT r.service) AS services,
  COUNT(DISTINCT m.run) AS runs,
  SUM(m.accesses) AS accesses,
  SUM(m.l1_misses) AS l1_misses,
  SUM(m.stall_cycles) AS stall_cycles,
  SUM(m.sampled_weight) AS sampled_weight,
  SUM(m.hitm) AS hitm
FROM members m
JOIN runs r ON r.run = m.run
GROUP BY m.owner, m.class, m.member
