-- Builds that a guard in the store would have stopped: members that it holds on one line lie on several, or are gone.
-- Groups with members of members (`outer.inner`) are left out: layouts have outer members alone.
SELECT
  held.guard,
  held.group_index,
  held.type_name,
  held.line_bytes,
  held.service,
  held.build_id,
  held.commit_id,
  held.members,
  held.found,
  held.first_line,
  held.last_line
FROM (
  SELECT
    guard,
    group_index,
    type_name,
    line_bytes,
    service,
    build_id,
    commit_id,
    COUNT(member) AS members,
    COUNT(found_member) AS found,
    MIN(first_line) AS first_line,
    MAX(last_line) AS last_line
  FROM (
    SELECT
      g.run AS guard,
      g.group_index,
      g.type_name,
      g.line_bytes,
      g.member,
      b.run,
      b.service,
      b.build_id,
      b.commit_id,
      MAX(l.member) AS found_member,
      MIN(CAST(FLOOR(l.offset_bits / 8.0 / g.line_bytes) AS BIGINT)) AS first_line,
      MAX(CAST(FLOOR((l.offset_bits + COALESCE(l.bit_size, l.size_bytes * 8) - 1) / 8.0 / g.line_bytes) AS BIGINT))
        AS last_line
    FROM guards g
    JOIN (
      SELECT DISTINCT
        l.run, l.type_name, r.service, COALESCE(l.build_id, r.build_id) AS build_id, r.commit_id, r.data_model
      FROM runs r
      JOIN layouts l ON l.run = r.run
    ) b
      ON b.type_name = g.type_name AND COALESCE(b.data_model, g.data_model) = g.data_model
    LEFT JOIN layouts l ON l.run = b.run AND l.type_name = g.type_name AND l.member = g.member
    WHERE g.is_apart = FALSE
      AND NOT EXISTS (
        SELECT 1 FROM guards n
        WHERE n.run = g.run AND n.group_index = g.group_index AND n.is_apart = FALSE AND n.member LIKE '%.%'
      )
    GROUP BY
      g.run, g.group_index, g.type_name, g.line_bytes, g.member, b.run, b.service, b.build_id, b.commit_id
  ) by_member
  GROUP BY guard, group_index, type_name, line_bytes, run, service, build_id, commit_id
) held
WHERE held.first_line <> held.last_line OR held.found < held.members
