// Scenarios of an MCP server as tests of vitest: one test for each case, from the JSON report of `toolgate mcp test`.
//
// Run: npx vitest run --root examples/mcp_test
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const scenarios = fileURLToPath(new URL('shop.yaml', import.meta.url));
const ran = spawnSync(process.env.TOOLGATE_BIN ?? 'toolgate', ['mcp', 'test', '--json', scenarios], { encoding: 'utf8' });
// 0: every case passed, 1: a case did not. Any other code means that nothing ran.
if (ran.status !== 0 && ran.status !== 1) throw new Error(ran.error?.message ?? ran.stderr);

for (const scenario of JSON.parse(ran.stdout).cases) {
  test.skipIf(scenario.outcome === 'skipped')(scenario.title, () => {
    const findings = scenario.attempts.flatMap((attempt) => attempt.findings);
    expect(findings, scenario.reason).toEqual([]);
    expect(scenario.outcome, scenario.reason).toBe('passed');
  });
}
