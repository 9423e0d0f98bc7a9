// Without this, a purge could hide its price, or start one that the budget cannot carry without asking.

import t from 'tap'
import { createKey } from '../scenarios/set-up.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { cleanEnv, product, runCommand, spawnProgram, startCommand } from '../support/process.ts'
import { without } from '../support/programs.ts'
import { startProvider } from '../support/provider.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

/** `script` gives a command a terminal. */
const skip = without('script of util-linux', 'script', '--version')

const provider = await startProvider(t, undefined, null)
const unlimited = { ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '', ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '' }
// Five cells of weight 3; the four that are loaded leave one, which the reserve keeps.
const small = { ...unlimited, ABOHAWA_PROVIDER__BUDGET__PER_DAY: '15' }
const env = await singleGatewayEnv(t, provider.url, small)
const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
const key = await createKey(env, 'free')
const loaded = ['23.71,90.41', '23.61,90.51', '23.81,90.41', '22.31,91.81']
for (const point of loaded) {
  const path = `/api/v1/weather/coords/${point.replace(',', '/')}`
  await sendRequest(`${gateway.urls.api}${path}`, { key })
}
const purge = (...args: string[]) => runCommand(['cache', 'purge', ...args], env)
const purgedAs = async (point: string) =>
  (await sendRequest(`${gateway.urls.ops}/cache/cell?of=${point}`)).body.gateway.memory?.purged
const facts = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^ {2}(\S+(?: \S+)*) {2,}(.*)$/gm)].map(([, name, value]) => [name, value]),
  )

t.test('a dry run tells the price of an area, and purges nothing', async t => {
  const shown = await purge('district/3026', '--area', '--dry-run')
  t.hasStrict(shown, { code: 0, stderr: '' })
  t.match(shown.stdout, /^Nothing is purged: district\/3026\.\n/)
  t.match(facts(shown.stdout), {
    cached: /^[23] of 20 cells$/,
    costs: /^at most [69] of weight: [23] loads, if all of them are requested again$/,
    budget: 'leaves 1 of 13 of the day, beside the reserve for cells with nothing cached',
    now: /^room for 0; [23] stay stale until there is room$/,
    'all loaded': /^by demand, at the earliest 20\d\d-\d\d-\d\d 06:00:00, in /,
  })
  t.match(shown.stdout, /\n +one key may load 0 of them while others load too\n/)
  const all = JSON.parse((await purge('all', '--hard', '--dry-run', '--json')).stdout)
  t.hasStrict(all, {
    kind: 'hard',
    of: 'all',
    cells: 3_976,
    cached: 4,
    weight: 12,
    windows: [{ name: 'day', limit: 15, left: 3 }],
    closedUntil: null,
    fitsNow: 1,
    refusedNow: 3,
  })
  const free = await runCommand(['cache', 'purge', 'all', '--dry-run'], {
    ...env,
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
  })
  t.hasStrict(facts(free.stdout), {
    budget: 'without limits',
    now: 'room for all of them',
    'all loaded': 'by demand, as soon as they are requested',
  })
  t.equal(await purgedAs('23.71,90.41'), null)
})

t.test('a terminal asks before a purge that costs more than the budget leaves', { skip }, async t => {
  const onTerminal = (answer: string, args = '') => {
    let isAnswered = false
    const command = `${product} cache purge district/3026 --area ${args}`
    const line = ['script', '-qec', command, '/dev/null']
    const { child, said, closed } = spawnProgram(t, line, { env: cleanEnv(env) })
    child.stdout?.on('data', () => {
      if (isAnswered || !said.stdout.includes('[y/N]')) return
      isAnswered = true
      child.stdin?.write(answer)
    })
    return { said, closed }
  }
  for (const answer of ['n\r', '\r', '\u0004']) {
    const { said, closed } = onTerminal(answer)
    t.equal(await closed, 1, JSON.stringify(answer))
    t.match(said.stdout, /This purge costs more than the budget leaves: district\/3026\.\r\n {2}cached /)
    t.match(said.stdout, /Nothing was purged\.\r\n$/)
  }
  t.equal(await purgedAs('23.71,90.41'), null)

  const agreed = onTerminal('y\r')
  t.equal(await agreed.closed, 0)
  t.match(agreed.said.stdout, /Purged softly: Dhaka \(district 3026\) with all below it, \d+ places\.\r\n/)
  await until('it is in force', async () => (await purgedAs('23.71,90.41')) === 'soft')
  const { said, closed } = onTerminal('', '--yes')
  t.equal(await closed, 0)
  t.notMatch(said.stdout, 'y/N')
})

t.test('in a pipe nothing is asked, and the report has the price', async t => {
  const { code, stdout, stderr } = await purge('district/3026', '--area', '--hard', '--json')
  t.hasStrict({ code, stderr }, { code: 0, stderr: '' })
  const report = JSON.parse(stdout)
  t.hasStrict(report, {
    kind: 'hard',
    scope: { area: 'district/3026' },
    place: { name: 'Dhaka' },
    cells: 20,
    price: { kind: 'hard', cells: 20, cached: report.removed, refusedNow: report.removed - 1 },
  })
  t.ok(report.places > 100 && report.removed > 1)
  await until('it is in force', async () => (await purgedAs('23.71,90.41')) === undefined)
  t.equal(await purgedAs('22.31,91.81'), null, 'elsewhere nothing changed')
  const again = await purge('district/3026', '--area')
  t.hasStrict(facts(again.stdout), { covers: '20 cells', cached: '0 of 20 cells' })
  t.notMatch(again.stdout, /all loaded/, 'nothing has to be loaded again')
})
