// Response bodies from a real server: gzipped and not, complete, truncated, damaged and too long.

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { manualClock } from '../support/manual-clock.ts'
import { callOptions, openMeteo } from '../support/open-meteo.ts'

const text = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => ({ i, unit: '°C' })))
const maxBytes = 4 << 20
const zipped = gzipSync(text)
const damaged = Buffer.from(zipped)
damaged.fill(0, 2_000, 2_100)
const inGzip = { 'content-encoding': 'gzip' }

const answers: Record<string, RequestListener> = {
  '/plain': (_, response) => response.end(text),
  '/zipped': (_, response) => response.writeHead(200, inGzip).end(zipped),
  '/zipped-cut-off': (_, response) => response.writeHead(200, inGzip).end(zipped.subarray(0, -100)),
  '/damaged': (_, response) => response.writeHead(200, inGzip).end(damaged),
  '/swollen': (_, response) => response.writeHead(200, inGzip).end(gzipSync(Buffer.alloc(5 << 20))),
  '/refused': (_, response) =>
    response.writeHead(400, inGzip).end(gzipSync('{"error":true,"reason":"Latitude must be a number"}')),
  '/broken-off': (_, response) => {
    response.writeHead(200, { 'content-length': text.length })
    response.write(text.slice(0, 1_000), () => response.destroy())
  },
}
const server = createServer((request, response) => answers[request.url ?? '']?.(request, response))
await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
const call = createProviderCall(callOptions(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), {
  protocol: openMeteo,
  clock: manualClock(),
})
t.teardown(async () => {
  await call.close()
  server.close()
})

t.test('a body arrives complete, gzipped or not, in chunks', async t => {
  t.equal(await call.text({ path: '/plain', maxBytes }), text)
  t.equal(await call.text({ path: '/zipped', maxBytes }), text)
  const pieces = await Array.fromAsync(call.bytes({ path: '/zipped', maxBytes }))
  t.ok(pieces.length > 1 && pieces.every(({ length }) => length <= 1 << 16), `${pieces.length} pieces`)
})

for (const [path, code, message] of [
  ['/zipped-cut-off', 'provider_cut_off', /can't be unzipped/],
  ['/damaged', 'provider_cut_off', /can't be unzipped/],
  ['/swollen', 'provider_garbled', /longer than 4194304 bytes/],
  ['/refused', 'provider_refused', /Latitude must be a number/],
  ['/broken-off', 'provider_broke_off', /./],
] as const)
  t.test(`${path.slice(1)} is ${code}, and the next call succeeds`, async t => {
    await t.rejects(call.text({ path, maxBytes }), { code, message })
    t.equal(await call.text({ path: '/zipped', maxBytes }), text)
  })

t.test('a request that is not valid any more once there is a connection is not sent', async t => {
  let arrived = 0
  server.on('request', () => {
    arrived += 1
  })
  const request = (isValid: () => boolean) =>
    Array.fromAsync(call.bytes({ path: '/plain', maxBytes }, isValid))
  await t.rejects(
    request(() => false),
    { code: 'provider_not_sent', retryable: true },
  )
  t.ok((await request(() => true)).length > 0)
  t.equal(arrived, 1)
})

t.test('a reader that stops early closes the connection', async t => {
  for await (const piece of call.bytes({ path: '/plain', maxBytes })) {
    t.ok(piece.length > 0)
    break
  }
  t.equal(await call.text({ path: '/plain', maxBytes }), text)
})
