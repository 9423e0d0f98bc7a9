// Without it a log line could hold a key, a secret or a terminal control, or get lost at the end.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { AbohawaError } from '../../src/common/errors.ts'
import { createKey } from '../../src/keys/key-form.ts'
import { createLog, openLog } from '../../src/telemetry/log.ts'
import { leakIn, spellings } from '../support/key-spellings.ts'
import { outputOf } from '../support/process.ts'
import { hostileText, rawControlIn } from '../support/raw-controls.ts'

const written = () => {
  const lines: string[] = []
  return { lines, log: createLog('trace', { write: line => void lines.push(line) }) }
}

t.test('text is cut to 2,000 characters, a list or an object to 50 entries, wherever they stand', async t => {
  const { log, lines } = written()
  const long = 'x'.repeat(20_000_000)
  log.info({ reason: long }, 'sample')
  log.info({ scope: { cell: long, list: [long, { deeper: long }] } }, 'sample')
  log.info({ [long]: 1 }, 'sample')
  log.error({ err: new TypeError(long) }, 'sample')
  log.error({ err: Object.assign(new Error('short'), { body: long, cause: new Error(long) }) }, 'sample')
  log.child({}).info({ reason: long }, 'sample')
  for (const line of lines) {
    t.equal(JSON.parse(line).msg, 'sample')
    t.ok(line.length < 12_000, `${line.length} characters: ${line.slice(0, 100)}`)
  }
  const [first = ''] = lines
  t.match(JSON.parse(first), { level: 'info', time: /^2\d{3}-.*Z$/, reason: `${'x'.repeat(2_000)}…` })
  const listOf = (length: number) => Array.from({ length }, (_, i) => i)
  const mapOf = (length: number) => Object.fromEntries(listOf(length).map(i => [`n${i}`, i]))
  for (const length of [50, 51]) log.info({ list: listOf(length), map: mapOf(length) }, 'x')
  const [whole, cut] = lines.slice(-2).map(line => JSON.parse(line))
  t.strictSame([whole.list, whole.map], [listOf(50), mapOf(50)])
  t.strictSame([cut.list, cut.map], [[...listOf(50), '…'], { ...mapOf(50), '…': '…' }])
})

t.test('fields within the bounds are unchanged', async t => {
  const { log, lines } = written()
  const fields = {
    reason: 'Dhaka\nঢাকা "x" \\ 👍',
    count: 3,
    ratio: 0.5,
    none: null,
    yes: true,
    list: ['a', 1],
    nested: { deep: { deeper: 'b' } },
    url: 'http://127.0.0.1:9090',
    at: new Date(0),
  }
  log.info(fields, 'sample')
  log.error({ requestId: 'r', err: Object.assign(new TypeError('wrong'), { code: 'E_X' }) }, 'failed')
  log.info('alone')
  const [full, failed, alone] = lines.map(line => JSON.parse(line))
  t.hasStrict(full, { ...fields, at: '1970-01-01T00:00:00.000Z' })
  t.match(failed, {
    level: 'error',
    requestId: 'r',
    err: { type: 'TypeError', message: 'wrong', code: 'E_X', stack: /^TypeError: wrong\n {4}at / },
  })
  t.hasStrict(alone, { level: 'info', msg: 'alone' })
})

t.test('terminal controls are escaped, and the value stays the same', async t => {
  const { log, lines } = written()
  log.info({ reason: hostileText, [hostileText]: 1 }, 'sample')
  log.info(hostileText)
  for (const line of lines) {
    t.equal(rawControlIn(line), undefined)
    t.match(line, /^[^\n]*\n$/)
  }
  t.equal(JSON.parse(lines[0] ?? '').reason, hostileText)
  t.equal(JSON.parse(lines[1] ?? '').msg, hostileText)
})

t.test('keys are hidden, whatever their spelling and wherever they stand', async t => {
  const key = createKey()
  for (const [spelling, spell] of Object.entries(spellings)) {
    const { log, lines } = written()
    const spelled = spell(key)
    log.info({ reason: `the key ${spelled} was refused`, [spelled]: { list: [spelled] } }, 'sample')
    log.info(`the key ${spelled} was refused`)
    log.error({ err: new Error(spelled, { cause: new Error(spelled) }) }, 'failed')
    log.error({ err: new AbohawaError('x', spelled) }, 'failed')
    log.error({ reason: 'x'.repeat(1_990) + spelled }, 'failed')
    log.error(new Error(spelled))
    for (const line of lines) {
      JSON.parse(line)
      t.equal(leakIn(line, key), undefined, `${spelling}: ${line.slice(0, 300)}`)
    }
  }
})

t.test('secrets under their usual names, and those in URLs, are hidden', async t => {
  const { log, lines } = written()
  const secret = 'Tr0ub4dor3'
  log.info({ apiKey: secret, password: secret, authorization: secret, cookie: secret }, 'sample')
  log.info({ provider: { apiKey: secret, baseUrl: 'http://x' }, redis: { password: secret } }, 'sample')
  log.info({ token: secret, ops: { token: secret } }, 'sample')
  log.info({ redis: { sentinelPassword: secret, url: `redis://abohawa:${secret}@h:6379/2` } }, 'sample')
  log.info({ headers: { 'x-api-key': secret, authorization: secret, accept: 'x' } }, 'sample')
  log.info({ req: { headers: { 'x-api-key': secret, cookie: secret, host: 'h' } } }, 'sample')
  log.info(
    { reason: `connect to rediss://:${secret}@h:1 and http://u:${secret}@p/x?y=http://a@b failed` },
    'sample',
  )
  for (const line of lines) t.notMatch(line, secret, line)
  t.hasStrict(JSON.parse(lines[1] ?? ''), { provider: { apiKey: '***', baseUrl: 'http://x' } })
  t.hasStrict(JSON.parse(lines[3] ?? ''), { redis: { url: 'redis://abohawa:***@h:6379/2' } })
  t.hasStrict(JSON.parse(lines[5] ?? ''), { req: { headers: { 'x-api-key': '***', host: 'h' } } })
  t.hasStrict(JSON.parse(lines[6] ?? ''), { reason: 'connect to rediss://***@h:1 and http://***@b failed' })
})

/** Runs a program that logs in a process of its own, with a file as its argument. @returns what it printed */
const printed = (t: Test, program: string, file: string) => {
  const log = import.meta.resolve('../../src/telemetry/log.ts')
  const whole = `import { readFileSync } from 'node:fs'; import { openLog } from '${log}'; ${program}`
  return outputOf(t, [process.execPath, '--input-type=module', '-e', whole, file])
}

t.test('a line of a request that slipped through with a key is written without it', async t => {
  const key = createKey()
  const given = [
    `{"url":"/before"}`,
    `{"url":"/x?k=${key}&y=1","msg":"answered"}`,
    { reason: key },
    `{"url":"/x?k=svc_live_","name":"Dhaka"}`,
    ...Array.from({ length: 2_000 }, (_, i) => `{"line":${i},"pad":"${'x'.repeat(50)}"}`),
    `{"url":"${key}"}`,
  ]
  const file = join(t.testdir({ 'given.json': JSON.stringify(given) }), 'given.json')
  const program = `
    const { log, lines, flush } = openLog('info')
    for (const each of JSON.parse(readFileSync(process.argv[1], 'utf8')))
      if (typeof each === 'string') lines.end(Buffer.from(each + '\\n'))
      else log.info(each, 'sample')
    flush()`
  const stdout = await printed(t, program, file)
  t.equal(leakIn(stdout, key), undefined)
  const lines = stdout.trimEnd().split('\n')
  t.equal(lines.length, given.length)
  t.strictSame(JSON.parse(lines[1] ?? ''), { url: '/x?k=svc_live_…&y=1', msg: 'answered' })
  t.hasStrict(JSON.parse(lines[2] ?? ''), { reason: 'svc_live_…', msg: 'sample' })
  t.equal(lines[3], given[3])
  t.equal(lines.at(-1), '{"url":"svc_live_…"}')
})

t.test('a former file that can’t be closed is no end of the process', async t => {
  const file = join(t.testdir(), 'abohawa.log')
  const { log, reopen, flush } = openLog('info', file)
  const isOfLog = (fd: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file
    } catch {
      // That of the folder itself.
      return false
    }
  }
  const former = readdirSync('/proc/self/fd').filter(isOfLog).map(Number)
  t.equal(former.length, 1)
  reopen()
  for (const fd of former) closeSync(fd)
  await t.resolves(flush())
  log.info('after')
  await flush()
  t.match(readFileSync(file, 'utf8'), /"after"/)
})

t.test('lines that are gathered when the process ends are written', async t => {
  const program = `
    const { lines } = openLog('info', process.argv[1])
    for (let number = 0; number < 500; number++)
      lines.end(Buffer.from(JSON.stringify({ number, text: 'x'.repeat(100) }) + '\\n'))`
  const folder = t.testdir()
  // Several: without that they would be lost in half of the processes.
  for (let i = 0; i < 8; i++) {
    const file = join(folder, `${i}.log`)
    await printed(t, program, file)
    const numbers = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).number)
    t.strictSame(
      numbers,
      Array.from({ length: 500 }, (_, number) => number),
    )
  }
})

t.test('lines that wait for their reader at the end are neither cut nor reordered nor lost', async t => {
  const script = new URL('./slow-log-reader.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const closed = once(child, 'close')
  await once(child.stderr, 'data')
  let text = ''
  child.stdout.setEncoding('utf8').on('data', piece => {
    text += piece
  })
  await closed
  const all = text.trimEnd().split('\n')
  t.strictSame(
    all.slice(0, -1).map(line => JSON.parse(line).number),
    Array.from({ length: 10_000 }, (_, i) => i),
  )
  t.hasStrict(JSON.parse(all.at(-1) ?? ''), { msg: 'all is said' })
})
