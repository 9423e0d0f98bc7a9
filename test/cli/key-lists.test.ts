// Without this, filters, last use or CSV of key lists could be wrong.

import { join } from 'node:path'
import t from 'tap'
import { createCalendar, daysUpTo } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { createAdministration } from '../../src/keys/administration.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { runCommands } from '../support/printed.ts'

const path = join(t.testdir(), 'store.db')
const calendar = createCalendar('Asia/Dhaka')
const [newest = '', before = ''] = daysUpTo(calendar.dayOf(Date.now()), 2)
const store = openEmbeddedStore(path, systemClock)
const tiers = { free: 100, starter: 1_000 }
const administration = createAdministration({ store, tiers, calendar, clock: systemClock })
const used = await administration.createKey('Dhaka Tribune', 'starter')
const idle = await administration.createKey('Dhaka Tribune', 'free')
await store.raiseUsed(used.id, newest, 12, Date.now() + 86_400_000)
await store.raiseUsed(used.id, before, 30, Date.now() + 86_400_000)
await store.close()

const usage = (options: string) => ['keys', 'usage', ...options.split(' ').filter(Boolean)]
const run = (...lines: string[][]) => runCommands(lines, { ABOHAWA_STORE__PATH: path })

t.test('the usage of all keys is a line of CSV for each day with a count', async t => {
  const given = ['--all --csv --days 2', '--all --json --days 1', '--all', '']
  const [csv, json, text, neither] = await run(...given.map(usage))
  const rows = [
    `${used.id},,Dhaka Tribune,starter,1000,${newest},12\r\n`,
    `${used.id},,Dhaka Tribune,starter,1000,${before},30\r\n`,
  ]
  t.equal(csv?.stdout, `id,external_id,subscriber,tier,limit,day,used\r\n${rows.join('')}`)
  const all: { id: string }[] = JSON.parse(json?.stdout ?? '')
  const of = (key: { id: string }) => all.find(({ id }) => id === key.id)
  t.hasStrict(of(used), { used: 12, days: [{ day: newest, used: 12 }] })
  t.match(of(idle), { used: 0, days: [] })
  t.match(text?.stdout, new RegExp(`${used.id} .* 42  ${newest}\\n`))
  t.match(neither, { code: 2, stderr: /give the id of a key, or --all/ })
})

t.test('a list is filtered, says when a key was last used, and is CSV', async t => {
  const filters = ['used>11 subscriber=~dhaka', 'last_used=never', 'tier=free used>0']
  const lists = await run(...filters.map(filter => ['keys', 'list', '--json', '--filter', filter]))
  const idsOf = lists.map(({ stdout }) => JSON.parse(stdout).map(({ id }: { id: string }) => id))
  t.strictSame(idsOf, [[used.id], [idle.id], []])
  const [none, table, csv, wrong] = await run(
    ['keys', 'list', '--filter', 'tier=business'],
    ['keys', 'list'],
    ['keys', 'list', '--csv'],
    ['keys', 'list', '--filter', 'a=b'],
  )
  t.match(none?.stdout, 'No key matches.\n')
  t.match(table?.stdout, new RegExp(`${used.id} .* ${newest}\\n`))
  t.match(csv?.stdout, new RegExp(`^${used.id},.*,${newest},12,,,,,,\\r\\n`, 'm'))
  t.match(wrong, { code: 1, stderr: /the filter has "a=b", but a term is a field / })
})

t.test('the usage of all keys is in the order of what they used, with their subscribers', async t => {
  const again = openEmbeddedStore(path, systemClock)
  const options = { store: again, tiers, calendar, clock: systemClock }
  const most = await createAdministration(options).createKey('Padma', 'free')
  await again.raiseUsed(most.id, newest, 31, Date.now() + 86_400_000)
  await again.close()
  const [text, json, csv, plain, wrong, one] = await run(
    ...['--sort used --days 1', '--sort used --days 2 --json', '--all --sort used --days 1 --csv'].map(usage),
    ...['--all --json', '--sort name', `${most.id} --sort used`].map(usage),
  )
  const lines = text?.stdout.trim().split('\n') ?? []
  const columns = lines.map(line => line.replaceAll(/ {2,}/g, '|'))
  t.strictSame(columns, [
    'id|subscriber|tier|limit|used|last day',
    `${most.id}|Padma|free|100|31|${newest}`,
    `${used.id}|Dhaka Tribune|starter|1000|12|${newest}`,
    `${idle.id}|Dhaka Tribune|free|100|0|–`,
  ])
  t.hasStrict(JSON.parse(json?.stdout ?? ''), [
    { id: used.id, subscriber: 'Dhaka Tribune', used: 42 },
    { id: most.id, subscriber: 'Padma', used: 31 },
    { id: idle.id, used: 0 },
  ])
  t.match(csv?.stdout, new RegExp(`used\r\n${most.id},,Padma,.*\r\n${used.id},,Dhaka`))
  t.equal(JSON.parse(plain?.stdout ?? '')[0].id, used.id, 'else the oldest first')
  t.match(wrong, { code: 2, stderr: /--sort must be one of used, got "name"/ })
  t.match(one, { code: 2, stderr: /an id can't be combined with --all or --sort/ })
})
