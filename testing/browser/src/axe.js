// What axe-core finds serious or critical: rule, place, and what it says about it.
axe.run(document, { resultTypes: ["violations"] }).then((result) =>
  result.violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .flatMap((one) =>
      one.nodes.map((node) => `${one.id} (${one.impact}) at ${node.target}: ${node.failureSummary}`.replace(/\s+/g, " ")),
    ),
);
