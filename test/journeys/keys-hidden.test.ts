// Without it a key in a wrong place could appear in a response or in the log, in some spelling.

import { once } from 'node:events'
import t from 'tap'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { leakIn, ofHeaders, spellings } from '../support/key-spellings.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { openSocket } from '../support/raw-connection.ts'

const provider = await startProviderHere(t, undefined, null)
const env = await singleGatewayEnv(t, provider.url, { ABOHAWA_LOG__LEVEL: 'trace' })
const issue = async (): Promise<string> => {
  const named = ['--subscriber', 'A', '--tier', 'enterprise', '--json']
  const { stdout } = await runCommand(['keys', 'create', '--create-store', ...named], env)
  return JSON.parse(stdout).key
}

/** Sends raw bytes and reads all until the other side closes. */
const sendBytes = async (url: string, bytes: string): Promise<string> => {
  const socket = openSocket(url)
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString()
  })
  socket.write(bytes, 'latin1')
  await once(socket, 'close')
  return received
}

// The wrong places of a key, each one request on a connection; `good` is the line of the key that authenticates.
const end = 'connection: close\r\n\r\n'
const http = 'HTTP/1.1\r\nhost: x\r\n'
const list = '/api/v1/locations?type=division'
type Places = Record<string, (spelled: string, good: string) => string>
const toApi: Places = {
  'a query value': (k, good) => `GET ${list}&k=${k} ${http}${good}${end}`,
  'a query name': (k, good) => `GET ${list}&${k}=1 ${http}${good}${end}`,
  'a parameter that is quoted': (k, good) => `GET /api/v1/locations?type=${k} ${http}${good}${end}`,
  'a parameter that is quoted, cut in its midst': (k, good) =>
    `GET /api/v1/locations?type=${'x'.repeat(30)}${k} ${http}${good}${end}`,
  'a search': (k, good) => `GET ${list}&q=${k}${k}${k} ${http}${good}${end}`,
  'a filter that is passed over, which links repeat': (k, good) =>
    `GET ${list}&division_id=${k}&limit=2&offset=2 ${http}${good}${end}`,
  'a path': (k, good) => `GET /api/v1/${k} ${http}${good}${end}`,
  'the id of a place': (k, good) => `GET /api/v1/weather/district/${k} ${http}${good}${end}`,
  'a path with a broken escape': (k, good) => `GET /api/v1/%zz${k} ${http}${good}${end}`,
  'a fragment': (k, good) => `GET ${list}#${k} ${http}${good}${end}`,
  'an absolute URL': (k, good) => `GET http://user:${k}@x${list} ${http}${good}${end}`,
  'a URL that is cut in the log': (k, good) => `GET ${list}&x=${'y'.repeat(1_930)}${k} ${http}${good}${end}`,
  'x-request-id': (k, good) => `GET ${list} ${http}${good}x-request-id: ${k}\r\n${end}`,
  'x-request-id, in its midst': (k, good) => `GET ${list} ${http}${good}x-request-id: trace-${k}.7\r\n${end}`,
  'a body': (k, good) =>
    `POST /api/v1/locations?k=${k} ${http}${good}content-length: ${k.length + 8}\r\n${end}{"k":"${k}"}`,
  'no HTTP at all': k => `${k}\r\n\r\n`,
  'an unknown method': k => `${k} / ${http}\r\n`,
  'a URL that is none': k => `GET /\xe0${k} ${http}\r\n`,
  'a header without a colon': k => `GET / HTTP/1.1\r\n${k}\r\n\r\n`,
  'a version that is none': k => `GET / HTTP/${k}\r\nhost: x\r\n\r\n`,
  'headers too large': k => `GET / ${http}x: ${k}${'y'.repeat(20_000)}\r\n\r\n`,
  CONNECT: k => `CONNECT ${k}:443 ${http}\r\n`,
}
const headers =
  'cookie user-agent if-none-match accept-encoding x-forwarded-proto x-forwarded-for traceparent'
// Nothing of a header is written anywhere but the id of a request, so that its spelling does not matter.
const inHeaders: Places = {
  'other headers': (k, good) => {
    const lines = [...headers.split(' ').map(name => `${name}: ${k}`), `authorization: Bearer ${k}`]
    const all = [`host: ${k}`, `referer: http://x/?k=${k}`, `${k}: 1`, ...lines].join('\r\n')
    return `GET ${list} HTTP/1.1\r\n${all}\r\n${good}${end}`
  },
  'x-api-key, spelled otherwise': k => `GET ${list} ${http}x-api-key: ${k}\r\n${end}`,
  'an unknown expectation': k => `GET / ${http}expect: ${k}\r\n${end}`,
}
const local = 'HTTP/1.1\r\nhost: 127.0.0.1\r\n'
const purge = (body: string, type = 'application/json') =>
  `POST /cache/purge ${local}content-type: ${type}\r\ncontent-length: ${body.length}\r\n${end}${body}`
const toOps: Places = {
  'a target': k => `GET /cache/cell?of=${k} ${local}${end}`,
  'the id of a place': k => `GET /cache/cell?of=district/${k} ${local}${end}`,
  'a path': k => `GET /${k} ${local}${end}`,
  'a path with a broken escape': k => `GET /%zz${k} ${local}${end}`,
  'the body of a purge': k => purge(JSON.stringify({ scop: k })),
  'the scope of a purge': k => purge(JSON.stringify({ scope: k })),
  'a content type': k => purge('{}', k),
  'a request of the provider': k =>
    `GET /provider/v1/forecast?latitude=${k}&longitude=90&k=${k} ${local}${end}`,
  'a path at the provider': k => `GET /provider/${k} ${local}${end}`,
  'what another host header says': k => `GET /livez HTTP/1.1\r\nhost: ${k}\r\norigin: http://${k}\r\n${end}`,
}

t.test('no piece of a key is in anything that a gateway writes or answers', async t => {
  const [good, key] = [await issue(), await issue()]
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const { api = '', ops = '' } = gateway.urls
  let errors = ''
  gateway.child.stderr?.on('data', text => {
    errors += text
  })
  let sent = 0
  for (const [spelling, spell] of Object.entries(ofHeaders)) {
    const spelled = spell(key)
    const sendAll = (places: Places, url: string) =>
      Object.entries(places).map(async ([place, bytes]) => {
        sent += 1
        const title = `${place}, ${spelling}`
        const answer = await sendBytes(url, bytes(spelled, `x-api-key: ${good}\r\n`))
        if (!/^HTTP\/1\.1 \d{3} /.test(answer)) t.fail(`${title}: is not answered`)
        const leak = leakIn(answer, key)
        if (leak) t.fail(`${title}: ${leak} in ${answer.slice(0, 1_500)}`)
      })
    const isOfUrl = Object.hasOwn(spellings, spelling)
    await Promise.all([
      ...sendAll(inHeaders, api),
      ...(isOfUrl ? [...sendAll(toApi, api), ...sendAll(toOps, ops)] : []),
    ])
  }
  const nowhere = await sendBytes(ops, `GET /%zz/svc_live_abcdef ${local}${end}`)
  t.match(
    nowhere,
    /^HTTP\/1\.1 400 .*\r\n\r\n\{"error":"the path must be percent-encoded UTF-8, got \\"\/%zz\/svc_live_…\\"/s,
  )
  const query = 'latitude=23.8&longitude=90.4&k=svc%5flive%5fabcdef'
  const refused = await sendBytes(ops, `GET /provider/v1/forecast?${query} ${local}${end}`)
  t.match(refused, /^HTTP\/1\.1 400 /)
  t.match(refused, 'the URL must not hold an API key of this gateway, because the provider would log it')
  t.equal((await provider.state()).calls, 0, 'nothing reaches the provider')
  const metrics = await sendBytes(ops, `GET /metrics ${local}${end}`)
  t.match(metrics, /abohawa_admissions_total\{decision="malformed"\} \d/)
  for (const each of [good, key]) t.equal(leakIn(metrics, each), undefined)

  const closed = once(gateway.child, 'close')
  gateway.child.kill('SIGTERM')
  await closed
  for (const line of gateway.lines) {
    JSON.parse(line)
    for (const each of [good, key]) if (leakIn(line, each)) t.fail(`logged: ${line.slice(0, 2_500)}`)
  }
  t.equal(leakIn(errors, key), undefined, errors)
  const answered = gateway.lines.filter(line => line.includes('"msg":"answered"'))
  t.ok(answered.length > Object.keys(spellings).length * 15, `${answered.length} lines of ${sent} requests`)
})
