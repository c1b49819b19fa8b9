-- Which share of a service's accesses to a type goes to each member.
SELECT
  service,
  type_name,
  member,
  accesses / SUM(accesses) OVER (PARTITION BY service, type_name) AS share
FROM (
  SELECT r.service, m.owner AS type_name, m.member, SUM(m.accesses) AS accesses
  FROM runs r
  JOIN members m ON m.run = r.run
  WHERE m.class = 'member' AND m.member IS NOT NULL AND m.accesses > 0
  GROUP BY r.service, m.owner, m.member
) used
