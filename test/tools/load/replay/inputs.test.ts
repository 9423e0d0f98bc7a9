// Without it a wrong threshold, key file, target or pace would be understood as something else.

import { join } from 'node:path'
import t from 'tap'
import { keysFor, readKeyFile, readSecret } from '../../../../tools/load/replay/key-file.ts'
import { arrivalsOf, type Pace } from '../../../../tools/load/replay/pace.ts'
import { createRecorder } from '../../../../tools/load/replay/recorder.ts'
import { cacheOutcomeOf, headOf } from '../../../../tools/load/replay/response-head.ts'
import { scheduleOf } from '../../../../tools/load/replay/schedule.ts'
import { targetOf } from '../../../../tools/load/replay/target.ts'
import { thresholdOf } from '../../../../tools/load/replay/thresholds.ts'
import { arriving, inBatches } from './send-some.ts'

t.test('thresholds are compared with what was recorded', async t => {
  const recorder = createRecorder()
  for (let i = 1; i <= 100; i++)
    recorder.record({
      endpoint: i % 2 === 0 ? 'weather' : 'coords',
      outcome: i <= 90 ? 'hit' : 'miss',
      status: i === 100 ? 500 : 200,
      dueAt: 0,
      sentAt: i === 1 ? 11 : 0,
      endedAt: i,
      bytes: 1,
    })
  recorder.fail('timeout', { endpoint: 'weather', dueAt: 0, sentAt: 0, endedAt: 2_000 })
  recorder.drop({ endpoint: 'locations', dueAt: 0, endedAt: 10 })
  const expected: [string, boolean][] = [
    ['p50<51.1ms', true],
    ['p50<50ms', false],
    ['p97<0.0995s', true],
    // Two were not answered: how long they would have waited is not known.
    ['p99<9m', false],
    ['max<9m', false],
    ['max>1ms', false],
    ['mean<9m', false],
    ['weather.max<9m', false],
    ['locations.p50<9m', false],
    ['coords.max>98999us', true],
    ['coords.mean<50.6ms', true],
    ['hit.p90<81.5ms', true],
    ['miss.p50<20ms', false],
    ['weather.miss.max<101ms', true],
    ['forecast.p50<1s', false],
    ['errors<3%', true],
    ['errors<3', false],
    ['errors<=3', true],
    ['hits>=90%', true],
    ['hits>90%', false],
    ['misses<11%', true],
    ['late<1%', true],
    ['dropped<1%', true],
    ['dropped<1', false],
    ['status.5xx<1', false],
    ['status.200>98%', true],
    ['rate>9', true],
    ['rate>10', false],
  ]
  const judged = expected.map(([text]) => thresholdOf(text).judge(recorder, 10))
  const verdicts = judged.map(({ threshold, passed }) => [threshold, passed])
  t.strictSame(verdicts, expected, JSON.stringify(judged))
  const measured = (text: string) => judged.find(({ threshold }) => threshold === text)?.measured
  t.equal(measured('forecast.p50<1s'), 'no response')
  t.match(measured('p99<9m'), /^no response after \d+ ms$/)
  t.has(thresholdOf('status.429<1').judge(createRecorder(), 1), { measured: 'no response', passed: false })
})

t.test('a threshold has the percentiles of the report, also where the rank is no whole number', async t => {
  for (const [count, slow] of [
    [80, 1],
    [160, 2],
    [1_501, 2],
  ] as const) {
    const recorder = createRecorder()
    const common = { endpoint: 'weather_places', dueAt: 0, sentAt: 0 } as const
    const answer = { ...common, outcome: 'hit', status: 200, bytes: 1 } as const
    for (let i = slow; i < count; i++) recorder.record({ ...answer, endedAt: 1 })
    const run = { seconds: 1, sendingSeconds: 1 } as unknown as Parameters<typeof recorder.result>[0]
    for (let i = 0; i < slow; i++) recorder.record({ ...answer, endedAt: 900 })
    for (const name of ['p50', 'p90', 'p99', 'p99.9'])
      for (const scope of ['', 'weather_places.', 'weather_places.hit.', 'hit.']) {
        const { measured } = thresholdOf(`${scope}${name}<9m`).judge(recorder, 1)
        const { latency } = recorder.result(run)
        const reported = latency[name.replace('.', '') as 'p50']
        t.ok(
          Math.abs(Number.parseFloat(measured) - Number(reported)) < 1,
          `${name}: ${measured}, ${reported}`,
        )
      }
    for (let i = 0; i < slow; i++) recorder.fail('timeout', { ...common, endedAt: 5 })
    t.equal(thresholdOf('p99.9<9m').judge(recorder, 1).passed, false)
    t.equal(recorder.result(run).latency.p999, null)
  }
})

t.test('what is no threshold is one sentence with those that are', async t => {
  const more = ['rate>5%', 'nowhere.p99<1ms', 'hit.hit.p50<1s', '', 'p99<20ms; x']
  for (const text of ['p99', 'p99<20', 'p101<1s', 'errors<1ms', 'hits', ...more])
    t.throws(
      () => thresholdOf(text),
      {
        name: 'InputError',
        message: /^a threshold must be an expression such as p99<20ms, [^\n]*, got "[^\n]*"$/,
      },
      text,
    )
})

t.test('keys are found by external id, by id, and else go by their order', async t => {
  const folder = t.testdir({
    'keys.json': JSON.stringify([
      { id: 'key_a', externalId: 'a', key: 'svc_live_a' },
      { id: 'key_b', externalId: 'b', key: 'svc_live_b' },
      { id: 'key_old', externalId: 'old', key: null },
    ]),
    'keys.csv':
      'id,key,external_id,subscriber,tier,limit,expires,existed\nkey_1,svc_live_1,a,X,free,10,,no\nkey_2,svc_live_2,,X,free,10,,no\n',
    'one.json': JSON.stringify({ id: 'key_1', key: 'svc_live_1', store: 'x' }),
    'key.txt': 'svc_live_1\n',
  })
  const json = readKeyFile(join(folder, 'keys.json'))
  const csv = readKeyFile(join(folder, 'keys.csv'))
  t.strictSame(keysFor(['b', 'a'], json), ['svc_live_b', 'svc_live_a'])
  t.strictSame(keysFor(['key_2', 'a'], csv), ['svc_live_2', 'svc_live_1'])
  t.strictSame(keysFor(['x', 'y'], json), ['svc_live_a', 'svc_live_b'])
  t.strictSame(keysFor(['x', 'y', 'z'], json, true), ['svc_live_a', 'svc_live_b', 'svc_live_a'])
  t.strictSame(keysFor(['x'], readKeyFile(join(folder, 'one.json'))), ['svc_live_1'])
  t.equal(readSecret('--key', 'key', join(folder, 'key.txt')), 'svc_live_1')
  t.throws(() => keysFor(['a', 'c', 'old'], json), {
    message:
      /^--keys has no key for 2 of 3 key ids of the traffic, such as "c", "old"; --reuse-keys .*--key FILE .*keys create --from/,
  })
  t.throws(() => keysFor(['x', 'y', 'z'], json), {
    message: /^the traffic has 3 key ids, but --keys has 2 keys, none of them for such an id; --reuse-keys/,
  })
})

t.test('a file that has no keys is one sentence', async t => {
  const folder = t.testdir({
    'half.json': '[{"key": "svc_li',
    'empty.json': '[]',
    'other.csv': 'a,b\n1,2\n',
    'ids.csv': 'subscriber,tier,external_id,limit\nLoad test,free,key-0001,10\n',
    'blank.csv': 'key\na b\n',
    'two.txt': 'one\ntwo\n',
  })
  for (const [name, sentence] of [
    ['half.json', /which is not valid JSON; --keys takes the output of `abohawa keys create/],
    ['empty.json', /which has no key/],
    ['other.csv', /--keys takes the output of/],
    [
      'ids.csv',
      /which has ids but no keys; give the output of `abohawa keys create --from .*ids\.csv --csv`/,
    ],
    ['blank.csv', /line 2 of .* has a key with blanks/],
    ['none.csv', /can't be read/],
  ] as const)
    t.throws(() => readKeyFile(join(folder, name)), { name: 'InputError', message: sentence }, name)
  t.throws(
    () => readSecret('--key', 'key', join(folder, 'two.txt')),
    /--key must be a file with only one key/,
  )
})

t.test('a target that is not near is refused until it is allowed', async t => {
  const away = 'https://93.184.215.14'
  const refusal = /neither this machine nor in a private network; --allow-remote/
  await t.rejects(targetOf(away), { message: refusal })
  t.hasStrict(await targetOf(away, { allowRemote: true }), { host: '93.184.215.14', port: 443, isTls: true })
  for (const near of ['127.0.0.1:1', 'localhost', '[::1]:8080', '10.1.2.3', '192.168.1.1', '[fd00::1]'])
    t.ok(await targetOf(`http://${near}`), near)
  t.hasStrict(await targetOf('http://localhost:8080/base/'), { base: '/base', authority: 'localhost:8080' })
  for (const [bad, sentence] of [
    ['', /the target must be an address such as http.*, got ""/],
    ['ftp://localhost', /must be an address/],
    ['http://localhost/?x=1', /must be an address/],
    ['unix:', /must be an address/],
    ['http://user:secret@localhost', /^the target must not have a user or password/],
    ['http://no-such-name.invalid', /the host name "no-such-name.invalid" can't be resolved/],
  ] as const)
    await t.rejects(targetOf(bad), { name: 'InputError', message: sentence }, bad)
  for (const [url, options, message] of [
    ['http://10.1.2.3', { insecure: true }, /--insecure works only for targets on this machine/],
    ['http://localhost', { ca: '/nowhere.pem' }, /--ca is .* can't be read/],
  ] as const)
    await t.rejects(targetOf(url, options), { message })
})

t.test('arrivals have a number, an instant and an end', async t => {
  const schedule = await scheduleOf(inBatches(arriving([0, 1_000, 3_000])))
  const usual: Pace = { mode: 'recorded', speed: 1, rate: 0, loop: false, durationMs: undefined, warmUpMs: 0 }
  const pace = (more: Partial<Pace>) => arrivalsOf(schedule, { ...usual, ...more })
  const dues = ({ due }: ReturnType<typeof pace>, count: number) =>
    Array.from({ length: count }, (_, i) => due(i))
  const over = Number.POSITIVE_INFINITY
  t.strictSame(dues(pace({ speed: 2 }), 4), [0, 500, 1_500, over])
  t.match(pace({ speed: 2 }), { total: 3, endsAt: 1_500 })
  t.strictSame(dues(pace({ loop: true, durationMs: 6_000 }), 6), [0, 1_000, 3_000, 4_500, 5_500, over])
  t.match(pace({ durationMs: 500 }), { total: 1, endsAt: 0 })
  t.match(pace({ mode: 'rate', rate: 100, loop: true, durationMs: 10_000 }), { total: 1_000, endsAt: 9_990 })
  t.match(pace({ mode: 'rate', rate: 1 }), { total: 3, endsAt: 2_000 })
  t.match(pace({ mode: 'rate', rate: 1, loop: true }), { total: undefined, endsAt: undefined })
  t.match(pace({ mode: 'closed' }), { total: 3, endsAt: undefined })
  const still = await scheduleOf(inBatches(arriving([0, 0])))
  t.throws(() => arrivalsOf(still, { ...usual, loop: true }), /--loop requires --rate, because all requests/)
})

t.test('methods that may change something are left out and counted', async t => {
  const others = arriving([1, 2], { method: 'POST' })
  const requests = [...arriving([0]), ...others, ...arriving([3], { method: 'HEAD' })]
  t.match(await scheduleOf(inBatches(requests)), { count: 2, skipped: { POST: 2 } })
  t.match(await scheduleOf(inBatches(requests), true), { count: 4, skipped: {} })
})

t.test('cache-status is read as RFC 9211 has it', async t => {
  for (const [value, outcome] of [
    ['abohawa; hit; ttl=412; detail=memory; key="23.8,90.4"', 'hit'],
    ['abohawa; hit; ttl=-30; detail=redis; key="23.8,90.4"', 'stale'],
    ['abohawa; fwd=stale; ttl=-30; detail=memory', 'stale'],
    ['abohawa; fwd=stale; collapsed; ttl=-30', 'stale'],
    ['abohawa; fwd=miss; collapsed; stored; ttl=3600', 'miss'],
    ['abohawa; fwd=miss; stored, "edge, of nginx"; hit', 'miss'],
    ['origin; fwd=miss, edge; hit; ttl=5', 'hit'],
    ['edge; detail=none', 'none'],
  ] as const)
    t.equal(cacheOutcomeOf(value), outcome, value)
  t.equal(headOf('220 mail\r\n\r\n'), undefined)
  t.equal(headOf('HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n'), undefined)
  t.equal(headOf('HTTP/1.1 200 OK\r\nno colon here\r\n\r\n'), undefined)
  const lines = 'cache-status: abohawa; hit; ttl=4\r\ncache-status: edge; fwd=miss\r\n'
  t.hasStrict(headOf(`HTTP/1.1 200 OK\r\n${lines}\r\n`), { outcome: 'hit' }, 'a proxy adds a line')
  t.hasStrict(headOf('HTTP/1.0 200 OK\r\n\r\n'), { closes: true, length: -1, outcome: 'none' })
})
