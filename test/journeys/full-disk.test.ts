// Without it a full disk or a locked store could stop requests, lose units, or let processes exceed a limit.

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { utcDayMs } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { issueKeys } from '../scenarios/keys.ts'
import { startProcesses } from '../scenarios/processes.ts'
import { processEnv, startProcess } from '../scenarios/set-up.ts'
import { type Running, runCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { type SmallDisk, smallDisk, withoutMounts } from '../support/small-disk.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'

// No provider runs; places need none.
const envOf = (path: string) =>
  processEnv('http://127.0.0.1:9', { ABOHAWA_STORE__PATH: path, ABOHAWA_LOG__LEVEL: 'info' })

const setUp = async (t: Teardown, keyCount: number) => {
  const disk = await smallDisk(t, 16_000_000)
  const path = join(disk.folder, 'store.db')
  await openEmbeddedStore(path, systemClock).close()
  const keys = await issueKeys(envOf(path), Array(keyCount).fill('business'))
  return { disk, path, keys, start: () => startProcess(t, envOf(path)) }
}

type Keys = Awaited<ReturnType<typeof setUp>>['keys']

const path = '/api/v1/locations?type=division&limit=1'
const isFull = ({ lines }: Running) =>
  lines.some(line => line.includes('"outage":"store"') && line.includes('full'))

// Sends so many requests with each key; returns the status and the remaining units of each.
const useUnits = async ({ urls }: Running, keys: Keys, times: number): Promise<string[]> => {
  const left: string[] = []
  for (let i = 0; i < times; i++)
    for (const [at, { key }] of keys.entries()) {
      const { status, headers } = await sendRequest(`${urls.api}${path}`, { key })
      left[at] = `${status} ${headers['x-ratelimit-remaining']}`
    }
  return left
}
const usedOf = async (storePath: string, id = ''): Promise<number> => {
  const { stdout } = await runCommand(['keys', 'usage', id, '--json'], envOf(storePath))
  return JSON.parse(stdout).days[0].used
}
// Fills the disk until no file of the store can grow. Returns the units of each key.
const exhaust = async (gateway: Running, keys: Keys, disk: SmallDisk): Promise<number> => {
  disk.fill()
  t.equal(disk.room(), 0)
  let used = 0
  while (!isFull(gateway) && used < 60) {
    await useUnits(gateway, keys, 1)
    used += 1
  }
  disk.fill()
  t.ok(isFull(gateway), 'a count had no room in the store')
  return used
}

t.test('the disk of a gateway is full', { skip: withoutMounts }, async t => {
  const { disk, path, keys, start } = await setUp(t, 6)
  const [known, strangers] = [keys.slice(0, 3), keys.slice(3)]
  // A thirty-second of the limit is left out.
  const leftAfter = (used: number) => `200 ${10_000 - 2 * 157 - used}`
  let gateway = await start()
  await useUnits(gateway, known, 10)
  const before = 10 + (await exhaust(gateway, known, disk))

  await t.test('it goes on from local allowances, for keys that it has not seen too', async t => {
    t.strictSame(await useUnits(gateway, known, 10), Array(3).fill(leftAfter(before + 10)))
    t.strictSame(await useUnits(gateway, strangers, 10), Array(3).fill(leftAfter(10)))
  })

  await t.test('what it admitted is in the store once there is room again', async t => {
    disk.free()
    await until('all is counted', async () => (await usedOf(path, keys[5]?.id)) === 10)
    t.equal(await usedOf(path, keys[0]?.id), before + 10)
    await until('and counting goes on', async () => {
      await useUnits(gateway, known, 1)
      return gateway.lines.some(line => line.includes('outage ended'))
    })
  })

  await t.test('what a stop loses on a full disk is in the log, by key', async t => {
    const counted = await usedOf(path, keys[5]?.id)
    gateway.child.kill('SIGTERM')
    await gateway.exited
    gateway = await start()
    await useUnits(gateway, known, 1)
    await exhaust(gateway, known, disk)
    await useUnits(gateway, strangers, 5)
    gateway.child.kill('SIGTERM')
    await gateway.exited
    const lost = gateway.lines.filter(line => line.includes(`"keyId":"${keys[5]?.id}"`))
    t.match(lost, [/"units":5,.*units of a key not counted/])
    disk.free()
    t.equal(await usedOf(path, keys[5]?.id), counted)
  })
})

t.test('several processes on one store whose disk is full', { skip: withoutMounts }, async t => {
  const { disk, path: storePath, keys } = await setUp(t, 3)
  const [limited, other, ofWeather] = keys
  const limit = 50
  const set = ['keys', 'set', limited?.id ?? '', '--limit', String(limit)]
  const changed = await runCommand(set, envOf(storePath))
  t.equal(changed.code, 0, changed.stderr)
  const provider = await startProvider(t, ['--runs', 'none'], null)
  const [cellWeight, budget, aside, processes] = [3, 150, 30, 2]
  // Another day would have another budget.
  await until('the day has time left', () => utcDayMs - (Date.now() % utcDayMs) > 30_000)
  const gateway = await startProcesses(t, processes, {
    ...envOf(storePath),
    ABOHAWA_PROVIDER__BASE_URL: provider.url,
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: String(budget),
    ABOHAWA_PROVIDER__BUDGET__RESERVE: '0',
    ABOHAWA_PROVIDER__BUDGET__KEY_SHARE: '1',
    ABOHAWA_TEST_PROVIDER__OUTAGE_SHARE: String(aside / budget),
  })
  // Each on its own connection: the kernel shares them out.
  const isAnswered = async (at: string, key = '') => {
    const options = { key, headers: { connection: 'close' } }
    return (await sendRequest(`${gateway.urls.api}${at}`, options)).status === 200
  }
  const admitted = async (key = '', times = 1) => {
    let granted = 0
    for (let i = 0; i < times; i++) if (await isAnswered(path, key)) granted += 1
    return granted
  }
  let requested = 0
  // Cells that nobody has loaded.
  const load = async (cells: number) => {
    const answers = await Promise.all(
      Array.from({ length: cells }, () => {
        requested += 1
        const point = `${(20.05 + (requested % 60) / 10).toFixed(2)}/${(88.05 + Math.floor(requested / 60) / 10).toFixed(2)}`
        return isAnswered(`/api/v1/weather/coords/${point}`, ofWeather?.key)
      }),
    )
    return answers.filter(Boolean).length
  }
  const before = await admitted(limited?.key, 10)
  const shared = 35
  t.equal(await load(shared), shared)
  disk.fill()
  t.equal(disk.room(), 0)

  await t.test('they admit no more than the limit together', async t => {
    t.equal(await admitted(other?.key, 60), 60)
    disk.fill()
    const total = before + (await admitted(limited?.key, 2 * limit))
    t.ok(isFull(gateway))
    // Each leaves out what another may have counted, two steps of a unit, and shares are rounded down.
    t.ok(total <= limit && total >= limit - 4, `${total} of ${limit}`)
  })

  await t.test('they load no more than the budget together', async t => {
    // What the files of the store still have room for may be written, so that it is filled again.
    await load(2 * processes)
    disk.fill()
    for (let i = 0; i < 3; i++) await load(10 * processes)
    const { weight } = await provider.state()
    t.ok(weight >= cellWeight * shared + aside, `each loads its part: ${weight}`)
    t.ok(weight <= budget, `${weight} of ${budget}`)
    t.equal(await load(5 * processes), 0, 'all is spent')
  })
})

t.test('a lock of another program delays no request, and costs no unit', async t => {
  const provider = await startProvider(t, [], null)
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock: systemClock,
    env: { ABOHAWA_PROVIDER__BUDGET__PER_DAY: '600' },
  })
  const cell = (lat: number) => gateway.get(`/weather/coords/${lat}/90.4`)
  t.hasStrict(await cell(23.8), { status: 200, headers: { 'x-ratelimit-remaining': '99999' } })
  const other = new DatabaseSync(gateway.config.store.path)
  t.teardown(() => other.close())
  const readyz = async () => (await sendRequest(`${gateway.opsUrl}/readyz`)).text

  other.exec('BEGIN IMMEDIATE')
  for (let i = 0; i < 20; i++) {
    t.equal((await cell(23.8)).status, 200)
    t.equal((await sendRequest(`${gateway.opsUrl}/livez`)).status, 200)
  }
  t.equal((await cell(24.8)).status, 200, 'a new cell too')
  t.match(await readyz(), /counted locally: .* another program holds its lock/)
  other.exec('ROLLBACK')

  await until('the units are counted', async () => /counted in the store/.test(await readyz()))
  const { days } = await gateway.administration.usage(gateway.keyIds.enterprise ?? '', 1)
  t.match(days, [{ used: 22 }], 'nothing is lost')
  const outage = gateway.logged.find(line => line.outage === 'store')
  t.match(outage, { reason: /another program holds its lock$/ })
})
