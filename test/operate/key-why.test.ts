// Without it, `keys why` could look at the wrong minute, or misread the log.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { createLogTally, keyAt, momentIn } from '../../src/operate/key-why.ts'

const calendar = createCalendar('Asia/Dhaka')
const now = Date.parse('2026-11-26T08:30:00Z')
const iso = (at: number) => new Date(at).toISOString()

t.test('a time of day is the last one that was, and a day may be given', async t => {
  for (const [given, at] of [
    ['14:05', '2026-11-26T08:05:00.000Z'],
    ['14:30', '2026-11-26T08:30:00.000Z'],
    ['14:31', '2026-11-25T08:31:00.000Z'],
    ['00:00:30', '2026-11-25T18:00:30.000Z'],
    ['2026-11-01T14:05', '2026-11-01T08:05:00.000Z'],
    ['2026-11-01 14:05:06', '2026-11-01T08:05:06.000Z'],
    ['2026-11-26T08:05:00Z', '2026-11-26T08:05:00.000Z'],
    ['2026-11-26T14:05+06:00', '2026-11-26T08:05:00.000Z'],
  ] as const)
    t.equal(iso(momentIn(given, calendar, now).at), at, given)
  const { end, from, until } = momentIn('14:05', calendar, now)
  t.equal(iso(end), '2026-11-26T08:06:00.000Z')
  t.strictSame([iso(from), iso(until)], ['2026-11-26T08:04:00.000Z', '2026-11-26T08:07:00.000Z'])
  t.equal(iso(momentIn('14:05:10', calendar, now).until), '2026-11-26T08:06:11.000Z')
  for (const wrong of ['', '5 past 2', '25:00', '14:5', '2026-11-31T14:05', '2026-11-26'])
    t.throws(
      () => momentIn(wrong, calendar, now),
      /^at must be a time in Asia\/Dhaka such as .*, got ".*"$/,
      wrong,
    )
  t.throws(() => momentIn('2026-11-26T14:31', calendar, now), /^at must be in the past, got /)
  const summer = createCalendar('Europe/Berlin')
  const back = momentIn('2026-10-25T02:30', summer, now)
  t.equal(iso(back.at), '2026-10-25T00:30:00.000Z', 'the first of two')
})

const moment = momentIn('14:05', calendar, now)
const before = moment.at - 60_000
const record = {
  ...{ id: 'key_a', hash: 'h', subscriberId: 's', tier: 'free', limit: null, externalId: null },
  ...{ createdAt: 0, revokedAt: null, expiresAt: null, previousHashes: [], restrictions: null, rates: null },
}
const subscriber = { id: 's', name: 'A', createdAt: 0, revokedAt: null }

t.test('the state of then is that of the order in which a request is refused', async t => {
  const state = (change: object, of: typeof subscriber | undefined = subscriber) =>
    keyAt({ ...record, ...change }, of, moment)
  t.hasStrict(state({}), { state: 'valid', since: null, replacedAt: [] })
  t.hasStrict(state({ createdAt: moment.end }), { state: 'not created' })
  t.hasStrict(state({ revokedAt: before, expiresAt: before }), { state: 'revoked', since: iso(before) })
  t.hasStrict(state({ expiresAt: before }), { state: 'expired', since: iso(before) })
  t.hasStrict(state({}, { ...subscriber, revokedAt: before as never }), { state: 'subscriber revoked' })
  t.hasStrict(keyAt(record, undefined, moment), { state: 'subscriber missing' })
  t.hasStrict(state({ revokedAt: moment.at + 30_000 }), { state: 'revoked' }, 'in the middle of the minute')
  const later = moment.at + 60_000
  t.has(state({ revokedAt: later, expiresAt: later }), { state: 'valid' }, 'what came later is no matter')
  const previousHashes = [before, later].map(validUntil => ({ hash: 'f', validUntil }))
  t.strictSame(state({ previousHashes }).replacedAt, [iso(before)])
})

/** A log of lines, each with its time of that day in UTC. */
const reportOf = (...lines: readonly (readonly [time: string, fields: object])[]) => {
  const tally = createLogTally('key_a', moment, calendar)
  for (const [time, fields] of lines) {
    const line = JSON.stringify({ level: 'info', time: `2026-11-26T${time}.000Z`, ...fields })
    if (tally.isWanted(line)) tally.read(JSON.parse(line))
  }
  return tally.report()
}
const answer = (status: number, more: object = {}) => ({
  url: '/api/v1/weather/district/3026',
  status,
  keyId: 'key_a',
  tier: 'free',
  ...more,
  msg: 'answered',
})

t.test('responses of a minute that are alike are counted together, and others are left out', async t => {
  const found = reportOf(
    ['08:03:59', answer(429)],
    ['08:04:00', answer(200)],
    ['08:05:01', answer(429)],
    // It arrived in these minutes, and its line came later.
    ['08:07:10', answer(500, { reason: 'provider_timeout', arrivedAt: '2026-11-26T08:06:59.000Z' })],
    ['08:05:02', answer(429, { keyId: 'key_ab' })],
    ['08:05:09', answer(429)],
    ['08:05:10', answer(401, { keyId: undefined, reason: 'malformed' })],
    ['08:05:11', answer(401, { keyId: 'key_b', reason: 'key-revoked' })],
    ['08:07:00', answer(200)],
  )
  t.match(found, {
    firstAt: '2026-11-26T08:03:59.000Z',
    lastAt: '2026-11-26T08:07:10.000Z',
    share: 1,
    answers: [
      { minute: /08:04/, status: 200, count: 1 },
      {
        minute: /08:05/,
        status: 429,
        reason: null,
        tier: 'free',
        count: 2,
        firstAt: /:01\./,
        lastAt: /:09\./,
      },
      { minute: /08:06/, status: 500, reason: 'provider_timeout', count: 1 },
    ],
    withoutKey: { malformed: 1 },
  })
  t.equal(found.answers.length, 3)
  t.strictSame(Object.keys(found.withoutKey), ['malformed'])
  t.match(reportOf(['08:05:01', answer(200, { keyId: 'key_b', share: 0.1 })]), {
    share: 0.1,
    hasRequests: true,
  })
  t.match(reportOf(['08:05:01', { msg: 'listening' }]), { share: 1, hasRequests: false })
})

t.test('outages of these minutes are found by their lines, also one that began before the log', async t => {
  const outage = (name: string, msg: string, more: object = {}) => ({
    outage: name,
    ...more,
    msg: `${name} outage ${msg}`,
  })
  const found = reportOf(
    ['07:00:00', outage('store', 'started', { code: 'store_unavailable' })],
    ['07:01:00', { ...outage('store', '', { seconds: 60 }), msg: 'outage is over' }],
    ['08:04:30', outage('provider', 'continues', { seconds: 600 })],
    ['08:06:00', outage('provider', 'ended', { seconds: 690 })],
    ['08:06:30', outage('store', 'started', { code: 'store_unavailable' })],
    ['08:20:00', outage('provider', 'started', { code: 'provider_failing' })],
  )
  t.strictSame(found.outages, [
    { outage: 'provider', from: '2026-11-26T07:54:30.000Z', until: '2026-11-26T08:06:00.000Z', code: null },
    { outage: 'store', from: '2026-11-26T08:06:30.000Z', until: null, code: 'store_unavailable' },
  ])
})

t.test('an outage whose process ended is not told of later minutes', async t => {
  const begins = { outage: 'provider', code: 'provider_failing', msg: 'provider outage started' }
  const goesOn = { outage: 'provider', seconds: 60, msg: 'provider outage continues' }
  const stops = { msg: 'stopped' }
  for (const [name, lines, isOn] of [
    ['stopped before', { '08:00:00': begins, '08:01:00': stops }, false],
    ['started again', { '08:00:00': begins, '08:02:00': { msg: 'listening' } }, false],
    ['killed', { '08:00:00': begins, '08:01:00': goesOn, '08:20:00': answer(200) }, false],
    ['stopped in these minutes', { '08:04:00': begins, '08:04:50': stops }, true],
    ['another process stopped', { '08:04:00': begins, '08:04:10': { process: 2, ...stops } }, true],
    ['in the first minute', { '08:03:30': begins }, true],
  ] as const)
    t.strictSame(
      reportOf(...Object.entries<object>(lines)).outages.map(({ until }) => until),
      isOn ? [null] : [],
      name,
    )
  const earlier = reportOf(['08:05:00', { ...begins, since: '2026-11-26T08:03:00.000Z' }])
  t.hasStrict(earlier.outages, [{ from: '2026-11-26T08:03:00.000Z' }])
})

t.test('the limit of that time is the one in the lines of the key', async t => {
  const near = (limit: number) => ({
    keyId: 'key_a',
    limit,
    percent: 100,
    msg: 'key quota exhausted',
  })
  t.equal(reportOf(['08:00:00', near(3)], ['08:04:00', near(5)], ['08:20:00', near(5_000)]).limit, 5)
  t.equal(reportOf(['08:04:00', answer(429)]).limit, null)
})

t.test('what happened to the key on that day is told, up to these minutes', async t => {
  const found = reportOf(
    ['08:00:00', { keyId: 'key_a', percent: 100, msg: 'key quota exhausted' }],
    ['08:01:00', { action: 'revoke', id: 'key_a', msg: 'keys changed through the ops listener' }],
    ['08:02:00', { action: 'revoke', id: 'key_b', msg: 'keys changed through the ops listener' }],
    ['08:10:00', { action: 'reinstate', id: 'key_a', msg: 'keys changed through the ops listener' }],
    ['17:59:00', answer(200)],
  )
  t.strictSame(found.events, [
    { at: '2026-11-26T08:00:00.000Z', what: 'key quota exhausted' },
    { at: '2026-11-26T08:01:00.000Z', what: 'keys changed through the ops listener: revoke' },
  ])
})

t.test('a log of others can fill no memory, and lines without a time are passed over', async t => {
  const many = Array.from(
    { length: 1_000 },
    (_, i) => ['08:05:00', answer(401, { reason: `r${i}` })] as const,
  )
  t.equal(reportOf(...many).answers.length, 200)
  const keyless = many.map(([time, line]) => [time, { ...line, keyId: undefined }] as const)
  t.equal(Object.keys(reportOf(...keyless).withoutKey).length, 200)
  const tally = createLogTally('key_a', moment, calendar)
  t.notOk(tally.isWanted('{"msg":"answered","keyId":"key_a"}'))
  tally.read({ time: 'yesterday', keyId: 'key_a', msg: 'answered' })
  t.match(tally.report(), { firstAt: null, lastAt: null, answers: [] })
})
