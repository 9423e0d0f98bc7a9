// A key in a wrong place is revealed to nobody, in a URL plain or percent-encoded, in a header in whatever spelling: the test searches the whole output of a gateway
// process and every response byte for pieces of the secret.

import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { leakIn, ofHeaders, spellings } from '../support/key-spellings.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'

const folder = t.testdir()
const provider = await startProvider(t, undefined, null)
const env = {
  ABOHAWA_STORE__PATH: join(folder, 'store.db'),
  ABOHAWA_SERVER__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '0s',
  ABOHAWA_OPS__PORT: '0',
  ABOHAWA_LOG__LEVEL: 'trace',
  ABOHAWA_PROVIDER__BASE_URL: provider.url,
}
const issue = async (): Promise<string> => {
  const { stdout } = await runCommand(
    ['keys', 'create', '--create-store', '--subscriber', 'A', '--tier', 'enterprise', '--json'],
    env,
  )
  return JSON.parse(stdout).key
}

/** Sends raw bytes and reads until the other side closes. */
const sendBytes = async (url: string, bytes: string): Promise<string> => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {})
  socket.write(bytes, 'latin1')
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}

// The wrong places of a key; `good` is the key that authenticates. Each is one request on a connection.
const end = 'connection: close\r\n\r\n'
const toApi: Record<string, (spelled: string, good: string) => string> = {
  'a query value': (k, good) =>
    `GET /api/v1/locations?type=division&k=${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a query name': (k, good) =>
    `GET /api/v1/locations?type=division&${k}=1 HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a parameter that is quoted': (k, good) =>
    `GET /api/v1/locations?type=${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a parameter that is quoted, cut in its midst': (k, good) =>
    `GET /api/v1/locations?type=${'x'.repeat(30)}${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a search': (k, good) =>
    `GET /api/v1/locations?type=division&q=${k}${k}${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a filter that is passed over, which links repeat': (k, good) =>
    `GET /api/v1/locations?type=division&division_id=${k}&limit=2&offset=2 HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a path': (k, good) => `GET /api/v1/${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'the id of a place': (k, good) =>
    `GET /api/v1/weather/district/${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a path with a broken escape': (k, good) =>
    `GET /api/v1/%zz${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a fragment': (k, good) =>
    `GET /api/v1/locations?type=division#${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'an absolute URL': (k, good) =>
    `GET http://user:${k}@x/api/v1/locations?type=division HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'a URL that is cut in the log': (k, good) =>
    `GET /api/v1/locations?type=division&x=${'y'.repeat(1_930)}${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\n${end}`,
  'x-request-id': (k, good) =>
    `GET /api/v1/locations?type=division HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\nx-request-id: ${k}\r\n${end}`,
  'x-request-id, in its midst': (k, good) =>
    `GET /api/v1/locations?type=division HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\nx-request-id: trace-${k}.7\r\n${end}`,
  'a body': (k, good) =>
    `POST /api/v1/locations?k=${k} HTTP/1.1\r\nhost: x\r\nx-api-key: ${good}\r\ncontent-type: application/json\r\ncontent-length: ${k.length + 8}\r\n${end}{"k":"${k}"}`,
  'no HTTP at all': k => `${k}\r\n\r\n`,
  'an unknown method': k => `${k} / HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a URL that is none': k => `GET /\xe0${k} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a header without a colon': k => `GET / HTTP/1.1\r\n${k}\r\n\r\n`,
  'a version that is none': k => `GET / HTTP/${k}\r\nhost: x\r\n\r\n`,
  'headers too large': k => `GET / HTTP/1.1\r\nhost: x\r\nx: ${k}${'y'.repeat(20_000)}\r\n\r\n`,
  CONNECT: k => `CONNECT ${k}:443 HTTP/1.1\r\nhost: x\r\n\r\n`,
}
// Nothing of a header is written anywhere but the id of a request, so that its spelling does not matter.
const inHeaders: typeof toApi = {
  'other headers': (k, good) =>
    `GET /api/v1/locations?type=division HTTP/1.1\r\nhost: ${k}\r\nx-api-key: ${good}\r\nauthorization: Bearer ${k}\r\ncookie: k=${k}\r\nreferer: http://x/?k=${k}\r\nuser-agent: ${k}\r\nif-none-match: "${k}"\r\naccept-encoding: ${k}\r\nx-forwarded-proto: ${k}\r\nx-forwarded-for: ${k}\r\ntraceparent: ${k}\r\n${k}: 1\r\n${end}`,
  'x-api-key, spelled otherwise': k =>
    `GET /api/v1/locations?type=division HTTP/1.1\r\nhost: x\r\nx-api-key: ${k}\r\n${end}`,
  'an unknown expectation': k => `GET / HTTP/1.1\r\nhost: x\r\nexpect: ${k}\r\n${end}`,
}
const toOps: Record<string, (spelled: string) => string> = {
  'a target': k => `GET /cache/cell?of=${k} HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  'the id of a place': k => `GET /cache/cell?of=district/${k} HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  'a path': k => `GET /${k} HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  'a path with a broken escape': k => `GET /%zz${k} HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  'the body of a purge': k =>
    `POST /cache/purge HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${JSON.stringify({ scop: k }).length}\r\n${end}${JSON.stringify({ scop: k })}`,
  'the scope of a purge': k =>
    `POST /cache/purge HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${JSON.stringify({ scope: k }).length}\r\n${end}${JSON.stringify({ scope: k })}`,
  'a content type': k =>
    `POST /cache/purge HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: ${k}\r\ncontent-length: 2\r\n${end}{}`,
  'a request of the provider': k =>
    `GET /provider/v1/forecast?latitude=${k}&longitude=90&k=${k} HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  'a path at the provider': k => `GET /provider/${k} HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  'what another host header says': k => `GET /livez HTTP/1.1\r\nhost: ${k}\r\norigin: http://${k}\r\n${end}`,
}

t.test('no piece of a key is in anything that a gateway writes or answers', async t => {
  const [good, key] = [await issue(), await issue()]
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  let errors = ''
  gateway.child.stderr?.on('data', text => {
    errors += text
  })
  let sent = 0
  const sendAndCheck = async (title: string, url: string, bytes: string) => {
    sent += 1
    const answer = await sendBytes(url, bytes)
    if (!/^HTTP\/1\.1 \d{3} /.test(answer)) t.fail(`${title}: is not answered`)
    const leak = leakIn(answer, key)
    if (leak) t.fail(`${title}: ${leak} in ${answer.slice(0, 1_500)}`)
  }
  for (const [spelling, spell] of Object.entries(ofHeaders)) {
    const spelled = spell(key)
    const isOfHeader = !Object.hasOwn(spellings, spelling)
    await Promise.all([
      ...Object.entries(isOfHeader ? inHeaders : { ...toApi, ...inHeaders }).map(([place, bytes]) =>
        sendAndCheck(`${place}, ${spelling}`, gateway.urls.api ?? '', bytes(spelled, good)),
      ),
      ...Object.entries(isOfHeader ? {} : toOps).map(([place, bytes]) =>
        sendAndCheck(`ops: ${place}, ${spelling}`, gateway.urls.ops ?? '', bytes(spelled)),
      ),
    ])
  }
  const closed = once(gateway.child, 'close')
  gateway.child.kill('SIGTERM')
  await closed
  for (const line of gateway.lines) {
    JSON.parse(line)
    if (leakIn(line, key)) t.fail(`logged: ${line.slice(0, 2_500)}`)
  }
  t.equal(leakIn(errors, key), undefined, errors)
  const answered = gateway.lines.filter(line => line.includes('"msg":"answered"'))
  t.ok(answered.length > Object.keys(spellings).length * 15, `${answered.length} lines of ${sent} requests`)
})

t.test('an ops path that is no URL is answered with one sentence', async t => {
  const gateway = await startCommand(t, ['serve'], ['ops'], { ...env, ABOHAWA_STORE__PATH: ':memory:' })
  const answer = await sendBytes(
    gateway.urls.ops ?? '',
    `GET /%zz/svc_live_abcdef HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  )
  t.match(answer, /^HTTP\/1\.1 404 /)
  t.match(answer, /\r\n\r\n\{"error":"there is nothing here; /)
  t.notMatch(answer, 'abcdef')
})

t.test('no provider request has a key of ours in its URL', async t => {
  const before = (await provider.state()).calls
  const gateway = await startCommand(t, ['serve'], ['ops'], { ...env, ABOHAWA_STORE__PATH: ':memory:' })
  const answer = await sendBytes(
    gateway.urls.ops ?? '',
    `GET /provider/v1/forecast?latitude=23.8&longitude=90.4&k=svc%5flive%5fabcdef HTTP/1.1\r\nhost: 127.0.0.1\r\n${end}`,
  )
  t.match(answer, /^HTTP\/1\.1 400 /)
  t.match(
    answer,
    '{"error":"the URL holds an API key of this gateway; allowed: one without, the provider would log it"}',
  )
  t.equal((await provider.state()).calls, before)
})
