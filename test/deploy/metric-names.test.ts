// Without it alerts, dashboard, runbook and docs could name metrics that no gateway has.

import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { rulesFile, samplesIn, withoutPromtool } from '../support/promtool.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { paragraphOf, paragraphs } from './runbook.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const rulesText = readFileSync(rulesFile, 'utf8')
const testsText = read('deploy/prometheus/tests.yaml')
const dashboardText = read('deploy/grafana/dashboard.json')
const manual = globSync('docs/operating/*.md', { cwd: root }).map(read).join('\n')
const table = read('docs/operating/metrics.md')

type Rule = {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; next: string; runbook_url: string }
}
const alerts: Rule[] = parse(rulesText).groups.flatMap(({ rules }: { rules: Rule[] }) => rules)

// biome-ignore lint/suspicious/noExplicitAny: what each test looks for
type Panel = Record<string, any> & { targets?: { expr: string }[] }
const dashboard: { schemaVersion: number; panels: Panel[]; templating: { list: object[] } } =
  JSON.parse(dashboardText)
const graphs = dashboard.panels.filter(({ type }) => type !== 'row')
const queries = graphs.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

// With limits, for whose windows there are series, and a fallback.
const gateway = await startGateway(t, {
  providerUrl: 'http://127.0.0.1:9',
  env: {
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
    ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '5000',
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
    ABOHAWA_PROVIDER__FALLBACKS: '[{ baseUrl: "http://127.0.0.1:7" }]',
  },
})
const scrape = (await sendRequest(`${gateway.opsUrl}/metrics`)).text
const series = [...samplesIn(scrape).keys()]
const families = [...scrape.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? '')
// Node's own have series of garbage collection after the first one only.
const names = new Set([
  ...series.map(one => one.split('{', 1)[0] ?? ''),
  ...families.filter(name => name.startsWith('nodejs_gc')).map(name => `${name}_sum`),
])
const isOurs = (name: string): boolean => /^(abohawa|http_server)_/.test(name)
const metricsIn = (text: string): string[] => [
  ...new Set(text.match(/\b(?:abohawa|http_server|nodejs|process)_[a-z0-9_]+\b/g)),
]

t.test('every metric of the alerts, their tests and the dashboard is in a scrape', async t => {
  for (const [where, text] of Object.entries({
    alerts: alerts.map(({ expr }) => expr).join('\n'),
    tests: testsText,
    dashboard: queries.join('\n'),
  })) {
    const used = metricsIn(text)
    t.ok(used.length > 15, `${where} names ${used.length} metrics`)
    for (const name of used) t.ok(names.has(name), `${where}: ${name}`)
  }
})

t.test('every value of a label that an alert or a query asks for is in a scrape', async t => {
  let values = 0
  for (const expr of [...alerts.map(({ expr }) => expr), ...queries])
    for (const [, metric = '', matchers = ''] of expr.matchAll(/([a-z0-9_]+)\{([^}]*)\}/g))
      for (const [, label, operator, wanted = ''] of matchers.matchAll(/(\w+)(=~?)"([^"]*)"/g)) {
        if (label === 'job' || label === 'instance') continue
        for (const value of operator === '=~' ? wanted.split('|') : [wanted]) {
          values += 1
          const part = `${label}="${value}"`
          t.ok(
            series.some(one => one.startsWith(`${metric}{`) && one.includes(part)),
            `${metric}{${part}}`,
          )
        }
      }
  t.ok(values > 15, `${values} values`)
})

t.test('a metric whose name other services have too is asked for by job', async t => {
  const shared = /\b(?:up|(?:http_server|nodejs|process)_[a-z0-9_]+)\b(?!\{[^}]*\bjob=)/g
  for (const expr of [...alerts.map(({ expr }) => expr), ...queries])
    t.strictSame(expr.match(shared), null, expr)
})

t.test('the documentation has every metric of a scrape, and no other', async t => {
  const rows = [...table.matchAll(/^\| (`[^|]*`) \|([^|]*)\|/gm)]
  const documented = new Set(rows.flatMap(([, cell = '']) => metricsIn(cell)))
  for (const name of families.filter(isOurs)) t.ok(documented.has(name), `${name} is documented`)
  for (const name of documented) t.ok(families.includes(name), `${name} is there`)
  // Elsewhere parts of a histogram are named too.
  for (const name of metricsIn(manual).filter(isOurs))
    t.ok(names.has(name) || families.includes(name), `${name} is there`)
  for (const [, name = '', labels = ''] of rows) {
    const [metric = ''] = metricsIn(name)
    if (!isOurs(metric)) continue
    const named = [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).sort()
    t.strictSame(named, labelsOf(metric), `the labels of ${metric}`)
  }
})

/** The labels of a family's series, without those of a histogram's buckets. */
const labelsOf = (metric: string): string[] => {
  const found = series.find(one => new RegExp(`^${metric}(_count)?(\\{|$)`).test(one)) ?? ''
  return [...found.matchAll(/(\w+)="/g)].map(([, label = '']) => label).sort()
}

t.test('every alert has a paragraph of three steps in the runbook, a severity and a test', async t => {
  t.ok(alerts.length > 25, `${alerts.length} alerts`)
  t.equal(paragraphs.map(({ alert }) => alert).join(), alerts.map(({ alert }) => alert).join())
  for (const { alert, labels, annotations } of alerts) {
    t.equal(annotations.runbook_url, `docs/runbook.md#${alert.toLowerCase()}`)
    const { cause, consumers, steps } = paragraphOf(alert)
    for (const text of [cause, consumers]) t.match(text, /\w.*\.$/s, alert)
    t.equal(steps.length, 3, alert)
    t.equal(annotations.next, steps[0]?.commands[0]?.text, 'the runbook begins with it')
    t.match(labels.severity, /^(warning|critical)$/)
    t.match(annotations.summary, /\.$/)
    const cases = parse(testsText).tests.filter(({ name }: { name: string }) => name === alert)
    const tested = [{ exp_alerts: undefined }, { exp_alerts: [{ exp_labels: labels }] }]
    t.hasStrict(cases, [{ alert_rule_test: tested }], `${alert} is tested quiet and firing`)
  }
})

t.test('the dashboard can be imported, and every panel has a unit and a text', async t => {
  t.ok(dashboard.schemaVersion >= 39)
  t.hasStrict(dashboard.templating.list, [{ name: 'datasource', type: 'datasource' }])
  t.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  t.equal(rows.join(), 'Now,Traffic,Cache,Provider and budget,Store,Keys and quotas,Process')
  for (const { title, description, fieldConfig, targets = [], datasource, gridPos } of graphs) {
    t.ok(description, `${title} says what it shows`)
    t.ok(fieldConfig?.defaults.unit, `${title} has a unit`)
    t.ok(targets.length > 0, `${title} asks for something`)
    t.equal(datasource?.uid, `\${datasource}`)
    t.ok(gridPos.x + gridPos.w <= 24)
  }
  const places = new Map<string, string>()
  for (const { title, gridPos } of dashboard.panels)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        const other = places.get(`${x} ${y}`)
        if (other !== undefined) t.fail(`${title} lies on ${other}`)
        places.set(`${x} ${y}`, title)
      }
  const used = new Set(metricsIn(queries.join('\n')).map(name => name.replace(/_(bucket|sum|count)$/, '')))
  for (const name of families.filter(isOurs)) t.ok(used.has(name), `${name} is shown`)
})

t.test('promtool takes the alerts, their tests and every query', { skip: withoutPromtool }, async t => {
  const promtool = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
    t.equal(status, 0, `promtool ${args.join(' ')}\n${stdout}${stderr}`)
    return stdout
  }
  t.match(promtool('check', 'rules', rulesFile), `SUCCESS: ${alerts.length} rules found`)
  t.match(promtool('test', 'rules', join(root, 'deploy/prometheus/tests.yaml')), 'SUCCESS')
  const file = join(t.testdir(), 'queries.yaml')
  const rules = queries.map((expr, i) => ({
    record: `query_${i}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, 'any'),
  }))
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  t.match(promtool('check', 'rules', file), `SUCCESS: ${queries.length} rules found`)
})
