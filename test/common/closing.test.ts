// Without it thousands of requests could be made of one read after the last request of a connection.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecure } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { stopParsing } from '../../src/common/closing.ts'
import { localCertificate, trusting } from '../support/http2-client.ts'

const [cert, key] = [readFileSync(localCertificate.cert), readFileSync(localCertificate.key)]

for (const isTls of [false, true])
  t.test(
    `of 500 requests in one read, none is made behind the last${isTls ? ', under TLS too' : ''}`,
    async t => {
      let made = 0
      const listener: RequestListener = ({ socket }) => {
        made += 1
        if (made < 10) return
        stopParsing(socket)
        socket.destroy()
      }
      const server = isTls ? createSecure({ cert, key }, listener) : createServer(listener)
      t.teardown(() => server.close())
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const at = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
      const client = isTls ? connectTls({ ...at, ...trusting }) : connect(at)
      client.on('error', () => {})
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(500))
      client.resume()
      await once(client, 'close')
      t.equal(made, 10)
    },
  )
