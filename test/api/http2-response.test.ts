// Without it a fault in the error handler could end the process where a client speaks HTTP/2.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import t from 'tap'
import { http2Options } from '../../src/api/connection/http2-request.ts'
import { localCertificate, trusting } from '../support/http2-client.ts'

const certificate = { cert: readFileSync(localCertificate.cert), key: readFileSync(localCertificate.key) }

t.test('an error in the error handler is answered with 500', async t => {
  const app = fastify({
    serverFactory: listener =>
      createSecureServer({ ...http2Options(16_384), ...certificate }, listener as never) as never,
  })
  app.setErrorHandler(() => {
    throw new Error('again')
  })
  app.get('/', () => {
    throw new Error('once')
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connect(`https://127.0.0.1:${(app.server.address() as AddressInfo).port}`, trusting)
  t.teardown(async () => {
    session.destroy()
    await app.close()
  })
  for (const method of ['GET', 'HEAD']) {
    const stream = session.request({ ':path': '/', ':method': method })
    const closed = once(stream, 'close')
    const [headers] = await once(stream.resume(), 'response')
    t.equal(headers[':status'], 500, method)
    await closed
  }
})
