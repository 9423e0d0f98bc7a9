// Without it `--requests` could lack requests without saying so, or slow the senders down.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { createRequestRows, type RowBlock } from '../../../../tools/load/replay/request-log.ts'
import { runCommands } from '../../../support/printed.ts'
import { ok, startTarget } from './scripted-target.ts'
import { arriving, every, linesOf } from './send-some.ts'

type Line = { due: number; sent?: number; end: number; failed?: string; dropped?: true; warmUp?: true }

const folder = t.testdir({ 'key.txt': 'svc_live_a\n' })
const [traffic, key] = [join(folder, 'traffic.ndjson'), join(folder, 'key.txt')]
const due = every(2, 40)
writeFileSync(traffic, linesOf(arriving(due, { key: 'key-0001' })))
const linesIn = (bytes: Buffer): Line[] =>
  bytes
    .toString()
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
    .sort((a, b) => a.due - b.due)

t.test('every request that was due has a line', async t => {
  let received = 0
  const target = await startTarget(t, () =>
    ++received % 4 === 0 ? undefined : ok('{}', 'cache-status: abohawa; hit; ttl=9; detail=memory\r\n'),
  )
  const line = ['replay', traffic, '--target', target.url, '--key', key, '--json']
  const [packed, plain] = [join(folder, 'requests.ndjson.gz'), join(folder, 'requests.ndjson')]
  const [several, few] = await runCommands([
    // So long, only those fail that are never answered.
    [...line, '--timeout', '5s', '--workers', '2', '--warm-up', '20ms', '--requests', packed],
    [...line, '--timeout', '300ms', '--connections', '1', '--patience', '30ms', '--requests', plain],
  ])
  t.equal(several?.code, 0, `${several?.stderr}`)
  const all = linesIn(gunzipSync(readFileSync(packed)))
  const instants = all.map(each => each.due)
  t.strictSame(instants, due, 'in ms from the begin of the run, also of what is sent by another worker')
  for (const each of all) {
    t.ok(each.sent !== undefined && each.sent >= each.due && each.end >= each.sent, JSON.stringify(each))
    t.hasStrict(each, { method: 'GET', path: '/api/v1/weather/district/3026', key: 'key-0001' })
    t.strictSame(each.warmUp, each.due < 20 ? true : undefined)
    t.hasStrict(each, each.failed === undefined ? { status: 200, outcome: 'hit' } : { failed: 'timeout' })
  }
  t.equal(all.filter(each => each.failed !== undefined).length, 10)
  const counted = JSON.parse(several?.stdout ?? '').totals
  t.equal(all.filter(each => !each.warmUp).length, counted.due)
  t.notMatch(JSON.stringify(all), /svc_live/)

  t.equal(few?.code, 0, `${few?.stderr}`)
  const { totals } = JSON.parse(few?.stdout ?? '')
  const those = linesIn(readFileSync(plain))
  t.equal(those.length, 40)
  const dropped = those.filter(each => each.dropped)
  t.ok(dropped.length > 0)
  t.equal(dropped.length, totals.dropped)
  for (const each of dropped) t.ok(each.sent === undefined && each.end - each.due >= 30, JSON.stringify(each))
})

t.test('a file that takes nothing ends with 1 after the report; mistakes end before a request', async t => {
  const target = await startTarget(t)
  const line = ['replay', traffic, '--target', target.url, '--key', key, '--requests']
  const files = ['/dev/full', traffic, '-']
  const [full, same, output] = await runCommands(files.map(file => [...line, file]))
  t.equal(full?.code, 1)
  t.match(full?.stdout, /40 due, 40 sent, 40 answered/)
  t.match(full?.stderr, /--requests: .*no space left/)
  t.match([same?.code, same?.stderr], [1, /which the command reads; choose another file/])
  t.match([output?.code, output?.stderr], [2, /--requests must be a file/])
  t.equal(target.received.filter(({ path }) => path.startsWith('/api')).length, 40)
})

t.test('rows that nobody takes are left out and counted, in bounded memory', async t => {
  const blocks: RowBlock[] = []
  const rows = createRequestRows(block => blocks.push(block), 256)
  const add = (count: number): void => {
    for (let i = 0; i < count; i++) rows.add({ dueAt: i, sentAt: i, endedAt: i }, 200, 'hit')
  }
  add(3_000)
  t.strictSame([blocks.map(({ count }) => count), rows.lost()], [[1_024, 1_024], 952])
  rows.taken()
  add(10)
  rows.flush()
  t.strictSame([blocks.at(-1)?.count, rows.lost()], [10, 952], 'those after a block was taken are in it')
})
