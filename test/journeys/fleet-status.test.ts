// Without it `abohawa status` could show a wrong fleet, miss one that died, or break a terminal.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t, { type Test } from 'tap'
import { statusReport } from '../../src/operate/reports/status-report.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { freePort } from '../support/listening.ts'
import { cleanEnv, product, runCommand, startCommand } from '../support/process.ts'
import { without } from '../support/programs.ts'
import { startProviderHere } from '../support/provider.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { patienceMs, until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProviderHere(t, undefined, null)
const esc = '\u001b'
const weather = '/api/v1/weather/district/3026'

const setUp = async (t: Test) => {
  const redis = await startRedis(t)
  const env = {
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '3s',
    ABOHAWA_OPS__PORT: String(await freePort()),
    ...patientRedisEnv,
    ABOHAWA_REDIS__URL: redis.url,
    // Commands that reach no gateway read it too.
    ABOHAWA_CATALOGUE__PATH: usualCatalogue,
    ABOHAWA_PROVIDER__BASE_URL: provider.url,
    ABOHAWA_LOG__ACCESS: 'false',
  }
  const start = (own: Record<string, string> = {}) =>
    startCommand(t, ['serve'], ['api', 'ops'], { ...env, ABOHAWA_OPS__PORT: '0', ...own })
  /** The report of `status --json`, checked against its schema. */
  const status = async (...given: ['--gateway', string] | []) => {
    const { code, stdout, stderr } = await runCommand(['status', '--json', ...given], env)
    return { code, stderr, opsUrl: JSON.parse(stdout).opsUrl, ...statusReport.parse(JSON.parse(stdout)) }
  }
  const createKey = async (tier: string): Promise<{ id: string; key: string }> => {
    const create = ['keys', 'create', '--create-store', '--subscriber', 'Padma', '--tier', tier, '--json']
    return JSON.parse((await runCommand(create, env)).stdout)
  }
  return { env, redis, start, status, createKey }
}

t.test('a fleet is seen from each gateway and from the store', { skip: withoutOwnRedis }, async t => {
  const { env, redis, start, status, createKey } = await setUp(t)
  const differing = { ABOHAWA_QUOTA__TIERS__FREE: '101' }
  const [one, two, three] = await Promise.all([start(), start(), start(differing)])
  const urlOf = ({ urls }: typeof one) => urls.ops ?? ''
  const pids = [one, two, three].map(({ child }) => child.pid)
  const reportOf = async (gateway: typeof one) =>
    statusReport.parse((await sendRequest(`${urlOf(gateway)}/status`)).body)
  await until('the first sees all three, ready', async () => {
    const { instances } = await reportOf(one)
    return instances.filter(({ phase }) => phase === 'ready').length === 3
  })
  const all = await status('--gateway', urlOf(one))
  t.strictSame([all.code, all.stderr, all.opsUrl], [0, '', urlOf(one)])
  t.strictSame(new Set(all.instances.map(({ pid }) => pid)), new Set(pids))
  for (const { pid, isSelf } of all.instances) t.equal(isSelf, pid === one.child.pid)
  const other = all.instances.find(({ pid }) => pid === three.child.pid)
  t.strictSame(all.config?.differs, [other?.id], 'the one with another quota')
  const equal = all.instances.find(({ pid }) => pid === two.child.pid)
  t.equal(equal?.configHash, all.config?.hash)
  for (const { version, host, memoryBytes, startedAt, seenAt } of all.instances) {
    t.equal(version, all.version)
    t.ok(host)
    t.ok(Number(memoryBytes) > 20e6)
    t.ok(Date.parse(startedAt ?? '') <= Date.parse(seenAt ?? ''))
  }

  const [free, big] = [await createKey('free'), await createKey('business')]
  for (let i = 0; i < 90; i++) await sendRequest(`${two.urls.api}${weather}`, { key: free.key })
  for (let i = 0; i < 30; i++) await sendRequest(`${one.urls.api}${weather}`, { key: big.key })
  const sharesIn = ({ instances }: Pick<typeof all, 'instances'>) =>
    [one, two].map(({ child }) => Number(instances.find(({ pid }) => pid === child.pid)?.hitShare))
  // One load for the fleet. A heartbeat amid the requests tells of a part of them, in which that load weighs more.
  await until('the shares of all requests are in', async () => {
    const [ofOne = 0, ofTwo = 0] = sharesIn(await reportOf(two))
    return ofOne === 1 && ofTwo >= 0.9
  })
  const known = await status('--gateway', urlOf(two))
  t.has(known.keysNearLimit, [{ keyId: free.id, subscriber: 'Padma', tier: 'free', used: 90, limit: 100 }])
  t.hasStrict(known.budget.windows.at(-1), { name: 'day', used: 3, limit: 9_500 })
  t.hasStrict(known.store, { kind: 'redis', isUp: true, fault: null })
  t.ok(Number(known.store.usedBytes) > 500_000)

  await t.test('without a gateway the store tells the same', async t => {
    const alone = await status()
    t.match(alone, {
      ...{ code: 0, opsUrl: null, provider: null, cache: null, config: null, history: null },
      stderr: /^No gateway answered at http:\/\/127\.0\.0\.1:\d+ \(.*\): this is what the store knows\.\n$/,
      keysNearLimit: known.keysNearLimit,
    })
    t.strictSame(new Set(alone.instances.map(({ pid }) => pid)), new Set(pids))
    t.equal(alone.budget.windows.at(-1)?.used, 3)
    t.equal(alone.catalogue.checksum, known.catalogue.checksum)
    const { stdout } = await runCommand(['status'], env)
    t.match(stdout, /^Abohawa \S+, only the store \(redis\), /)
    t.notMatch(stdout, '\u001b')
    t.equal(stdout.match(/ ready /g)?.length, 3)
  })

  const pidsSeen = async () => (await reportOf(one)).instances.map(({ pid, phase }) => `${pid} ${phase}`)
  two.child.kill('SIGTERM')
  await until('the second drains', async () => (await pidsSeen()).includes(`${two.child.pid} draining`))
  t.equal(await two.exited, 0)
  const isThere = (await pidsSeen()).some(seen => seen.startsWith(`${two.child.pid} `))
  t.notOk(isThere, 'and is gone at once')
  three.child.kill('SIGKILL')
  await three.exited
  // In place of waiting: its last heartbeat is set to when three would be missed, then a fourth.
  const missed = (beats: number) =>
    redis.admin.zadd('abohawa:instances', Date.now() - beats * 5_000, other?.id ?? '')
  await until('one that missed three is there, for it may still come', async () => {
    await missed(3)
    return (await pidsSeen()).includes(`${three.child.pid} ready`)
  })
  await missed(4)
  await until('the killed one is gone after four missed heartbeats', async () =>
    (await pidsSeen()).every(seen => seen.startsWith(`${one.child.pid} `)),
  )
  t.hasStrict(await status('--gateway', urlOf(one)), { instances: [{ pid: one.child.pid, phase: 'ready' }] })

  await t.test('with Redis away it says so in a sentence, and ends with 1', async t => {
    await redis.kill()
    const away = await until('the gateway has noticed', async () => {
      const ended = await runCommand(['status', '--gateway', urlOf(one)], env)
      return ended.code === 1 && ended
    })
    t.match(away.stderr, /^The store is unavailable: Redis failed: .*\.\n$/)
    t.match(away.stdout, /\n {2}Redis .*away: Redis failed: /, 'what the gateway knows is shown all the same')
    t.match(away.stdout, /\n {2}circuit .*closed/)
    const neither = await runCommand(['status'], { ...env, ABOHAWA_OPS__PORT: '9' })
    t.hasStrict(neither, { code: 1, stdout: '' })
    t.match(neither.stderr, /^abohawa: redis\.url names 127\.0\.0\.1:\d+, which can't be used: .*\n$/)
  })
})

t.test('--watch prints plain lines where there is no terminal, until it is interrupted', async t => {
  const env = await singleGatewayEnv(t, provider.url)
  const gateway = await startCommand(t, ['serve'], ['ops'], env)
  const watch = await startCommand(t, ['status', '--watch'], [], env)
  const titles = () => watch.lines.filter(line => line.startsWith(`Abohawa `))
  await until('it was drawn twice', () => titles().length >= 2)
  t.match(titles()[0], gateway.urls.ops)
  t.notMatch(watch.lines.join('\n'), '\u001b')
  watch.child.kill('SIGINT')
  t.equal(await watch.exited, 0)

  const json = await startCommand(t, ['status', '--watch', '--json'], [], env)
  await until('there are two lines', () => json.lines.length >= 2)
  for (const line of json.lines) statusReport.parse(JSON.parse(line))
  json.child.kill('SIGTERM')
  t.equal(await json.exited, 0)
})

const withoutScript = without('script of util-linux', 'script', '--version')

t.test('--watch draws on the alternate screen, and restores it', { skip: withoutScript }, async t => {
  const env = await singleGatewayEnv(t, provider.url)
  await startCommand(t, ['serve'], ['ops'], env)
  const folder = t.testdir()
  for (const NO_COLOR of ['', '1']) {
    // One each: `script` empties its file after the start of the command, which would find what the one before has drawn, and
    // interrupt a process that does not listen yet. The file begins with the command, which the pattern does not match.
    const file = join(folder, `typescript${NO_COLOR}`)
    const line = `stty cols 70 rows 12; ${product} status --watch & pid=$!; until grep -aqs '[P]rovider' ${file}; do sleep 0.2; done; kill -INT $pid; wait $pid; echo code $?`
    const { stdout } = spawnSync('script', ['-qfec', line, file], {
      env: cleanEnv({ ...env, TERM: 'xterm', NO_COLOR }),
      encoding: 'utf8',
      timeout: patienceMs,
    })
    const [before = '', drawn = '', after = ''] = stdout.split(/(?<=\[\?1049h)|(?=\S\[\?1049l)/)
    t.match(before, `${esc}[?1049h`)
    t.match(after, /\[\?1049l.*code 0/s)
    t.equal(drawn.includes(`${esc}[1m`), NO_COLOR === '')
    const lines = stripVTControlCharacters(drawn.split(`${esc}[H`).at(-1) ?? '')
      .trimEnd()
      .split('\r\n')
    t.match(lines[0], /^Abohawa /)
    t.ok(lines.length <= 12, `${lines.length} lines`)
    for (const each of lines) t.ok(each.length <= 70, each)
  }
})
