// Without it, clients of the ops listener could exhaust the process with connections, requests or expensive answers.

import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import t from 'tap'
import { buildOps } from '../../src/operate/listener/listeners.ts'
import { createProbes, createReadiness } from '../../src/operate/listener/probes.ts'
import { openMeteo } from '../provider/provider-set-up.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { startCommand } from '../support/process.ts'
import { openSocket, requestBytes, sendRaw } from '../support/raw-connection.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import { refusedFor } from './ops-requests.ts'

const host = ['host: 127.0.0.1']
const providerUrl = 'http://127.0.0.1:9'
const statusOn = async (socket: Socket): Promise<string> => {
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1', 9, 12)
}

t.test(
  'of more connections than allowed the oldest without a whole request go, and probes are answered',
  async t => {
    const env = { ABOHAWA_TEST_OPS__MAX_CONNECTIONS: '8', ABOHAWA_TEST_HEALTH__MAX_CONNECTIONS: '8' }
    const gateway = await startGateway(t, {
      providerUrl,
      env: { ...env, ABOHAWA_TEST_OPS__REQUEST_TIMEOUT: '30s', ABOHAWA_HEALTH__PORT: '0' },
    })
    // The health listener has its own eight.
    for (const url of [gateway.opsUrl, gateway.healthUrl ?? '']) {
      const silent = Array.from({ length: 20 }, () => openSocket(url))
      for (const socket of silent) socket.on('error', () => {}).resume()
      for (const socket of silent) socket.write('GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx-half: ')
      const gone = () => silent.filter(({ destroyed }) => destroyed).length
      await until('the oldest are closed', () => gone() >= 12)
      t.ok(gone() <= 13, `${gone()} are closed`)
      t.equal(silent[19]?.destroyed, false, 'the latest stays')
      for (let i = 0; i < 10; i++)
        t.equal((await sendRaw(url, requestBytes('GET /livez', host))).status, 200, `probe ${i}`)
      for (const socket of silent) socket.destroy()
    }
    t.ok((await refusedFor(gateway.opsUrl, 'connections')) >= 24)
  },
)

t.test('a connection on which too many requests wait is closed', async t => {
  const { url, refused, release } = await counting(t)
  const socket = openSocket(url)
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  socket.resume()
  socket.write('GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'.repeat(1_000))
  await closed
  t.strictSame(refused, ['connections'])
  release()
})

t.test('a head or a body that comes too slowly, or is too long, is refused with a sentence', async t => {
  const hurried = await startGateway(t, { providerUrl, env: { ABOHAWA_TEST_OPS__REQUEST_TIMEOUT: '300ms' } })
  const gateway = await startGateway(t, { providerUrl })
  const json = (length: number) => `{"scope":"${'x'.repeat(length - 12)}"}`
  const post = (body: string, framing = `content-length: ${body.length}`) =>
    requestBytes('POST /cache/purge', [...host, 'content-type: application/json', framing], body)
  const late = 'the request did not arrive completely within 300 ms'
  const long = /^the body must have at most 4096 bytes$/
  for (const [bytes, status, error] of [
    ['GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ', 408, late],
    [post('{', 'content-length: 100'), 408, late],
    // Short enough to be read.
    [post(json(4_096)), 400, /^the target must be /],
    [post(json(4_097)), 413, long],
    [post(`1388\r\n${json(0x1388)}\r\n0\r\n\r\n`, 'transfer-encoding: chunked'), 413, long],
    [
      requestBytes('GET /metrics', [...host, `x: ${'x'.repeat(20_000)}`]),
      431,
      'the URL and headers must have at most 16 KiB together',
    ],
    ['GET /metrics HTTP/1.1\r\nhost : x\r\n\r\n', 400, 'the request is not valid HTTP'],
  ] as const)
    t.match(
      await sendRaw((error === late ? hurried : gateway).opsUrl, bytes),
      { status, body: { error } },
      bytes.slice(0, 100),
    )
  t.equal(await refusedFor(gateway.opsUrl, 'body'), 2)
  t.equal(await refusedFor(gateway.opsUrl, 'unparsable'), 2)
})

/** A listener whose test counts the work of readiness and metrics, and can delay it. */
const counting = async (
  t: Teardown,
  answerWithinMs = 30_000,
  maxConnections = 128,
  metricsBytes = 20_000,
) => {
  const count = { metrics: 0, checks: 0 }
  const refused: string[] = []
  const held = Promise.withResolvers<string>()
  const store = () => {
    count.checks += 1
    return held.promise
  }
  const exposition = async () => {
    count.metrics += 1
    return 'x'.repeat(metricsBytes)
  }
  const readiness = createReadiness({ store })
  readiness.phase = 'ready'
  const ops = buildOps(
    {
      probes: createProbes({ metrics: { contentType: 'text/plain', exposition }, readiness }),
      passthrough: { protocol: openMeteo.passthrough, totalTimeoutMs: () => 1 },
      register: async () => {},
      observer: { refused: reason => void refused.push(reason), unloadable: () => {} },
    },
    {
      ...{ host: '127.0.0.1', allowedHosts: [], token: null },
      ...{ maxConnections, requestTimeoutMs: 10_000, answerWithinMs },
    },
  )
  await ops.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => ops.close())
  const { port } = ops.server.address() as AddressInfo
  return { count, refused, release: () => held.resolve('embedded'), url: `http://127.0.0.1:${port}` }
}

/** Sends `each` requests on each of `sockets` connections at once; resolves to the number of 200s. */
const flood = async (url: string, path: string, sockets: number, each: number) => {
  const request = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`
  const last = requestBytes(`GET ${path}`, host)
  const answers = Array.from({ length: sockets }, async () => {
    const socket = openSocket(url)
    socket.write(request.repeat(each - 1) + last)
    let found = 0
    let rest = ''
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      const text = rest + chunk.toString('latin1')
      found += text.split('HTTP/1.1 200 OK').length - 1
      rest = text.slice(-14)
    }
    return found
  })
  return (await Promise.all(answers)).reduce((sum, found) => sum + found, 0)
}

t.test('10,000 simultaneous readiness requests share one check, and metrics requests a few', async t => {
  const { count, release, url } = await counting(t, 30_000, 256)
  const answers = flood(url, '/readyz', 100, 100)
  await until('the first look has begun', () => count.checks > 0)
  // All of them have arrived before the first check ends.
  const others = await Promise.all(Array.from({ length: 10 }, () => openSocket(url)))
  for (const socket of others) socket.write(requestBytes('GET /livez', host))
  await Promise.all(others.map(statusOn))
  release()
  t.equal(await answers, 10_000)
  t.ok(count.checks < 20, `${count.checks} looks`)

  t.equal(await flood(url, '/metrics', 100, 100), 10_000)
  t.ok(count.metrics < 1_000, `the metrics were worked out ${count.metrics} times`)
})

t.test('a reader that takes no answer is dropped, and a check that hangs holds nobody up', async t => {
  const { url, refused } = await counting(t, 300, 128, 100_000)
  // Some megabytes are buffered, and nobody reads them.
  const socket = openSocket(url)
  socket.pause()
  socket.write('GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'.repeat(190))
  await until('the reader is dropped', () => refused.includes('timeout'))

  const patient = await counting(t)
  t.hasStrict(await sendRaw(patient.url, requestBytes('GET /readyz', host)), {
    status: 200,
    body: { status: 'ready', detail: { store: 'not available' } },
  })
})

t.test('answers that nobody reads cost little memory, and the probes go on', async t => {
  const gateway = await startCommand(t, ['serve'], ['api', 'ops'], await singleGatewayEnv(t, providerUrl))
  const url = gateway.urls.ops ?? ''
  let bytes = 0
  const resident = async () => {
    const { text } = await sendRequest(`${url}/metrics`, { headers: { connection: 'close' } })
    bytes = text.length
    return Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1])
  }
  await resident()
  const before = await resident()
  const request = 'GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'
  const sockets = Array.from({ length: 100 }, () => {
    const socket = openSocket(url)
    socket.pause()
    socket.write(request.repeat(100))
    return socket
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  // Every response from now on was written after all other requests had been read.
  for (let round = 0; round < 20; round += 1)
    t.equal((await sendRaw(url, requestBytes('GET /livez', host))).status, 200)
  const grown = (await resident()) - before
  t.comment(`10,000 unread answers of /metrics: ${Math.round(grown / 1024 / 1024)} MiB`)
  // Of its hundred answers a connection holds a few, and the others are not made.
  const answersHeld = grown / bytes / sockets.length
  t.ok(answersHeld < 10, `${answersHeld} answers of ${bytes} bytes on each connection`)
})
