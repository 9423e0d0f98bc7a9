// Without it TLS clients could not resume at another gateway, or could resume under a replaced ticket key.

import { randomBytes } from 'node:crypto'
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { InputError } from '../../src/common/errors.ts'
import { startProcesses } from '../scenarios/processes.ts'
import { createKey, type Env, processEnv } from '../scenarios/set-up.ts'
import { localCertificate, renewedAt, startTlsGateway } from '../support/http2-client.ts'
import { manualClock } from '../support/manual-clock.ts'
import { runCommand } from '../support/process.ts'
import { until } from '../support/until.ts'

const fixture = (name: string) => join(import.meta.dirname, '..', 'fixtures', name)
const provider = { url: 'http://127.0.0.1:9' }
/** The settings of a process with TLS, a ticket key and a store in a folder. */
const envWith = (ticketKey: string, folder: string): Env =>
  processEnv(provider.url, {
    ABOHAWA_SERVER__TLS__CERT: localCertificate.cert,
    ABOHAWA_SERVER__TLS__KEY: localCertificate.key,
    ABOHAWA_SERVER__TLS__TICKET_KEY: ticketKey,
    ABOHAWA_STORE__PATH: join(folder, 'store.db'),
  })

type Visit = { readonly isResumed: boolean; readonly status: number; readonly ticket: Buffer | undefined }

/** One connection with one request, which resumes the session of the ticket where the gateway agrees. */
const visit = (url: string, key: string, session?: Buffer): Promise<Visit> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const at = { host: hostname, port: Number(port), rejectUnauthorized: false }
    const socket = connect({ ...at, minVersion: 'TLSv1.3', session })
    let head = ''
    let ticket: Buffer | undefined
    let isResumed = false
    socket.on('session', given => {
      ticket = given
    })
    socket.once('secureConnect', () => {
      isResumed = socket.isSessionReused()
      const request = 'GET /api/v1/locations?type=division HTTP/1.1'
      socket.write(`${request}\r\nhost: localhost\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`)
    })
    socket.on('data', (chunk: Buffer) => {
      head += chunk.toString('latin1')
    })
    socket.once('error', reject)
    socket.once('close', () => resolve({ isResumed, status: Number(head.slice(9, 12)), ticket }))
  })

/** The ticket of a full handshake. */
const ticketAt = async (t: Test, url: string, key: string): Promise<Buffer> => {
  const { isResumed, status, ticket } = await visit(url, key)
  t.equal(isResumed, false)
  t.equal(status, 200)
  t.ok(ticket, 'there is a ticket')
  return ticket ?? Buffer.alloc(0)
}

const writeKey = (folder: string, name: string, bytes = randomBytes(48)): string => {
  const file = join(folder, name)
  writeFileSync(file, bytes, { mode: 0o600 })
  return file
}

t.test('gateways with the same ticket key resume one another’s sessions, others do not', async t => {
  const folder = t.testdir()
  const one = writeKey(folder, 'one')
  const open = (ticketKey?: string) =>
    startTlsGateway(t, provider, ticketKey ? { ABOHAWA_SERVER__TLS__TICKET_KEY: ticketKey } : {})
  const gateways = await Promise.all([open(one), open(one), open(writeKey(folder, 'other')), open(), open()])
  const [first, same, other, without, alsoWithout] = gateways.map(({ apiUrl, keys }) => ({
    ticket: () => ticketAt(t, apiUrl, keys.enterprise ?? ''),
    visit: (ticket: Buffer) => visit(apiUrl, keys.enterprise ?? '', ticket),
  }))
  if (!first || !same || !other || !without || !alsoWithout) return t.fail('a gateway is missing')
  const [ticket, own] = [await first.ticket(), await without.ticket()]
  for (const [at, shown, isResumed] of [
    [first, ticket, true],
    [same, ticket, true],
    [other, ticket, false],
    [without, ticket, false],
    [without, own, true],
    // Each without a file made one of its own.
    [alsoWithout, own, false],
  ] as const)
    t.match(await at.visit(shown), { isResumed, status: 200 })
})

t.test('a new ticket key is used at once, and a new certificate leaves the one that there is', async t => {
  const folder = t.testdir()
  const [former, next] = [randomBytes(48), randomBytes(48)]
  const ticketKey = writeKey(folder, 'key', former)
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  const put = (name: string) => {
    copyFileSync(fixture(`${name}.crt`), cert)
    copyFileSync(fixture(`${name}.key`), key)
  }
  put('localhost')
  const files = { ABOHAWA_SERVER__TLS__CERT: cert, ABOHAWA_SERVER__TLS__KEY: key }
  const clock = manualClock(renewedAt)
  const withKey = { ...files, ABOHAWA_SERVER__TLS__TICKET_KEY: ticketKey }
  const gateway = await startTlsGateway(t, provider, withKey, clock)
  const alone = await startTlsGateway(t, provider, files, clock)
  const resumes = async ({ apiUrl, keys }: typeof gateway, ticket: Buffer) =>
    (await visit(apiUrl, keys.enterprise ?? '', ticket)).isResumed
  const logged = (msg: string) => gateway.logged.filter(line => line.msg === msg).length

  const ticket = await ticketAt(t, gateway.apiUrl, gateway.keys.enterprise ?? '')
  const ofAlone = await ticketAt(t, alone.apiUrl, alone.keys.enterprise ?? '')
  put('renewed')
  t.equal(await gateway.reloadConfig(), 'applied')
  t.equal(await alone.reloadConfig(), 'applied')
  t.strictSame([logged('certificate replaced'), logged('ticket key replaced')], [1, 0])
  t.equal(await resumes(gateway, ticket), true)
  t.equal(await resumes(alone, ofAlone), true, 'so it is without a file')

  writeKey(folder, 'key', next)
  t.equal(await gateway.reloadConfig(), 'applied')
  t.strictSame([logged('certificate replaced'), logged('ticket key replaced')], [1, 1])
  t.equal(await resumes(gateway, ticket), false, 'the ticket is of the former key')
  t.equal(await resumes(gateway, await ticketAt(t, gateway.apiUrl, gateway.keys.enterprise ?? '')), true)

  writeKey(folder, 'key', next.subarray(1))
  t.equal(await gateway.reloadConfig(), 'refused')
  writeKey(folder, 'key', former)
  t.equal(await gateway.reloadConfig(), 'applied')
  t.equal(await resumes(gateway, ticket), true, 'the former key is back')

  t.equal(await gateway.set({ 'server.tls.ticketKey': '' }), 'applied')
  t.equal(await resumes(gateway, ticket), false, 'without a file it has a key of its own')
  t.equal(await gateway.set({ 'server.tls.ticketKey': ticketKey }), 'applied')
  t.equal(await resumes(gateway, ticket), true)
})

t.test('with one file a client resumes at every process, also at one that was started later', async t => {
  const folder = t.testdir()
  const env = { ...envWith(writeKey(folder, 'key'), folder), ABOHAWA_TEST_CONFIG__POLL_EVERY: '1h' }
  const key = await createKey(env)
  const running = await startProcesses(t, 2, { ...env, ABOHAWA_LOG__LEVEL: 'info' })
  // The kernel gives each of them some.
  const resumed = async (ticket: Buffer) => {
    const all = await Promise.all(Array.from({ length: 16 }, () => visit(running.api, key, ticket)))
    return all.filter(({ isResumed }) => isResumed).length
  }
  const lines = (msg: RegExp) => running.lines.filter(line => msg.test(line)).length
  const former = await ticketAt(t, running.api, key)
  t.equal(await resumed(former), 16)
  running.child.kill('SIGALRM')
  await until('they are restarted', () => lines(/"processes restarted"/) === 1)
  t.equal(await resumed(former), 16)
  writeKey(folder, 'key')
  running.child.kill('SIGHUP')
  await until('both have it', () => lines(/"ticket key replaced"/) === 2)
  t.equal(await resumed(former), 0)
  t.equal(await resumed(await ticketAt(t, running.api, key)), 16)
})

t.test('a ticket key that can’t be used stops the start with one sentence', async t => {
  const folder = t.testdir()
  const open = writeKey(folder, 'open')
  chmodSync(open, 0o644)
  const bytes = (length: number) =>
    `must be a file of exactly 48 random bytes (openssl rand 48), got FILE with ${length} bytes`
  const faults = [
    [join(folder, 'none'), "is FILE, which can't be read: ENOENT"],
    [writeKey(folder, 'empty', Buffer.alloc(0)), bytes(0)],
    [writeKey(folder, 'hex', Buffer.from(randomBytes(48).toString('hex'))), bytes(96)],
    [
      open,
      "is FILE, which can't be read: other users of this machine may open it: set its mode to 600 or 640",
    ],
  ] as const
  for (const [file, reason] of faults) {
    // A gateway in this process is stopped by the same error; what a process makes of one is the same for all.
    const sentence = `server.tls.ticketKey ${reason.replace('FILE', file)}`
    const given = { ABOHAWA_SERVER__TLS__TICKET_KEY: file }
    await t.rejects(startTlsGateway(t, provider, given), { constructor: InputError, message: sentence })
    for (const command of file === open ? [['serve'], ['config', 'check']] : [['config', 'check']]) {
      const { code, stderr } = await runCommand(command, envWith(file, folder))
      t.not(code, 0)
      t.match(stderr, sentence)
      t.equal(stderr.trim().split('\n').length, 1, stderr)
    }
  }
})
