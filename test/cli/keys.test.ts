// Without this, rotating or changing a key could shorten its overlap, or lose its usage.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { usageText } from '../../src/cli/keys/usage-text.ts'
import { createCalendar, daysUpTo } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { runCommand } from '../support/process.ts'

const setUp = (folder: string) => {
  const env = { ABOHAWA_STORE__PATH: join(folder, 'store.db') }
  const command = (...args: string[]) => runCommand(args, env)
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], env)
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }
  const create = (): Promise<{ id: string; key: string }> =>
    json('keys', 'create', '--create-store', '--subscriber', 'Dhaka Tribune', '--tier', 'starter')
  return { env, command, json, create }
}

t.test('a key is rotated under its id, and lists say until when the former one works', async t => {
  const { env, command, json, create } = setUp(t.testdir())
  const { id, key } = await create()
  const before = Date.now()
  const rotated = await json('keys', 'rotate', id, '--overlap', '90m')
  t.match(rotated, { id, key: /^svc_live_[0-9A-Za-z]{38}$/, tier: 'starter', limit: 1_000 })
  t.not(rotated.key, key)
  const until = Date.parse(rotated.formerKeyUntil)
  t.ok(until >= before + 5_400_000 && until <= Date.now() + 5_400_000)
  t.hasStrict(await json('keys', 'show', id), { id, formerKeyUntil: rotated.formerKeyUntil })
  const shown = `${rotated.formerKeyUntil.slice(0, 10)} ${rotated.formerKeyUntil.slice(11, 16)}`
  t.match((await command('keys', 'list')).stdout, new RegExp(`old key until \\(UTC\\)\\n.*${shown}\\n`))

  const again = Date.now()
  const people = await command('keys', 'rotate', id)
  t.match(people.stdout, /^svc_live_\w{38}\n\nkey_\w+ for Dhaka Tribune, tier starter: 1,000 requests a day/)
  t.match(people.stdout, /The old key works until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\./)
  const soon = await json('keys', 'show', id)
  const ofDay = Date.parse(soon.formerKeyUntil) - 86_400_000
  t.ok(ofDay >= again - 1_000 && ofDay <= Date.now(), 'a day by default')
  t.hasStrict(await json('keys', 'rotate', id, '--overlap', '0s'), { id })
  t.equal((await json('keys', 'show', id)).formerKeyUntil, null, 'no former key works any more')
  t.equal((await json('keys', 'list')).length, 1)
  t.notOk(readFileSync(env.ABOHAWA_STORE__PATH, 'latin1').includes(rotated.key), 'the key is kept nowhere')

  await command('keys', 'revoke', id)
  const revoked = await command('keys', 'rotate', id)
  t.match(revoked, { code: 1, stderr: /is revoked; `abohawa keys revoke --undo key_/ })
})

t.test('a key changes its tier and gets a limit of its own, which is marked', async t => {
  const { command, json, create } = setUp(t.testdir())
  const { id } = await create()
  const set = (options: string) => json('keys', 'set', id, ...options.split(' '))
  t.hasStrict(await set('--tier business'), { tier: 'business', limit: 10_000, ownLimit: false })
  t.hasStrict(await set('--limit 2500'), { tier: 'business', limit: 2_500, ownLimit: true })
  t.match((await command('keys', 'show', id)).stdout, / 2500 \(own\) /)
  const kept = await command('keys', 'set', id, '--tier', 'free')
  const stays = /Its custom limit of 2,500 stays; `abohawa keys set key_\w+ --limit tier` removes/
  t.match(kept, { code: 0, stderr: stays })
  t.hasStrict(await set('--limit tier'), { tier: 'free', limit: 100, ownLimit: false })
  const all = { tier: 'starter', limit: 7, ownLimit: true, expiresAt: /^2099-12-31T/ }
  t.match(await set('--tier starter --limit 7 --expires 2099-12-31'), all)
  t.match(await set('--tier free --limit tier --expires never'), { limit: 100, expiresAt: null })
  t.match((await command('keys', 'show', id)).stdout, / 100 +active/)
})

t.test('a name that is nearly a known one is taken, and remarked upon', async t => {
  const { command, create } = setUp(t.testdir())
  await create()
  const named = (subscriber: string) =>
    command('keys', 'create', '--create-store', '--subscriber', subscriber, '--tier', 'free')
  const remark = '"Dhaka Tribun" is a new subscriber, and nearly "Dhaka Tribune".'
  t.match(await named('Dhaka Tribun'), { code: 0, stdout: /^svc_live_/, stderr: remark })
  t.match(await named('dhaka tribune'), { code: 0, stderr: /nearly "Dhaka Tribune?"/ })
  for (const other of ['Dhaka Tribune', 'Prothom Alo', 'Ab'])
    t.match(await named(other), { code: 0, stderr: /^Store: .*\n$/ }, other)
})

const today = createCalendar('Asia/Dhaka').dayOf(Date.now())

t.test('usage is columns where there is no screen, CSV by RFC 4180, and JSON', async t => {
  const { env, command, json, create } = setUp(t.testdir())
  const { id } = await create()
  const store = openEmbeddedStore(env.ABOHAWA_STORE__PATH, systemClock)
  const [newest = '', before = ''] = daysUpTo(today, 2)
  const keepUntil = Date.now() + 86_400_000
  await store.raiseUsed(id, newest, 12, keepUntil)
  await store.raiseUsed(id, before, 1_000, keepUntil)
  const detail = { keyId: id, day: newest, endpoint: 'weather', keepUntil }
  const byClass = { '2xx': 11, '4xx': 1 }
  await store.addDetail(
    Object.entries(byClass).map(([statusClass, count]) => ({ ...detail, statusClass, count })),
  )
  await store.close()

  const csv = await command('keys', 'usage', id, '--days', '2', '--csv')
  t.equal(csv.stdout, `day,used,limit\r\n${before},1000,1000\r\n${newest},12,1000\r\n`)
  const { days: counted, today: classes } = await json('keys', 'usage', id, '--days', '2')
  t.hasStrict(counted[0], { day: newest, used: 12 })
  t.hasStrict(counted[1], { day: before, used: 1_000 })
  t.hasStrict(classes[0], { endpoint: 'weather', statusClass: '2xx', count: 11 })
  t.hasStrict(classes[1], { endpoint: 'weather', statusClass: '4xx', count: 1 })
  const days = `day         used  limit\n${before}  1000   1000\n${newest}    12   1000\n`
  const byEndpoint = 'today by endpoint  2xx  4xx\nweather             11    1\n'
  t.equal((await command('keys', 'usage', id, '--days', '2')).stdout, `${days}\n${byEndpoint}`)
})

t.test('usage on a screen is a bar a day, as wide as the screen, with the limit marked', async t => {
  const days = [50, 0, 1, 100].map((used, i) => ({ day: `2026-11-${21 - i}`, used }))
  const usage = { id: 'key_1', subscriber: 'Padma', tier: 'free', today: [], cellsLoadedToday: 0, days }
  const text = (columns: number, limit: number | null = 100) => usageText({ ...usage, limit }, columns)
  t.equal(
    text(50),
    [
      'key_1, Padma, free: 100 a day, marked │',
      '',
      '  Wed 2026-11-18  100  100%  ████████████████████│',
      '  Thu 2026-11-19    1    1%  ▎                   │',
      '  Fri 2026-11-20    0    0%                      │',
      'today 2026-11-21   50   50%  ██████████          │',
    ].join('\n'),
  )
  t.match(text(50, 50), /█{10}│█{9}\n/, 'a day over a limit that was lowered')
  for (const columns of [46, 60, 80, 120])
    for (const line of text(columns).split('\n')) t.ok(line.length <= columns, `${columns}: ${line}`)
  t.match(text(80, 100_000), /100,000 a day, far beyond the bars/)
  t.match(text(30), /^day +used +limit\n/, 'too narrow for bars')
  t.match(text(80, null), /no limit/)
  for (const [cells, said] of [
    [0, undefined],
    [1, '1 grid cell loaded from the provider today'],
    [1_234, '1,234 grid cells loaded from the provider today'],
  ] as const) {
    const plain = usageText({ ...usage, limit: 100, cellsLoadedToday: cells }, undefined)
    t.equal(/^.*grid cell.*$/m.exec(plain)?.[0], said)
  }
})
