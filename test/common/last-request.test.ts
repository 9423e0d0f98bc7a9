// Behind the last request of a connection, Node's parser makes no more of what it has read. Node does not document the field that does it.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import t from 'tap'
import { endAtLast } from '../../src/common/last-request.ts'

t.test('of a thousand requests in one read, none is made behind the last', async t => {
  let made = 0
  const server = createServer(({ socket }) => {
    made += 1
    if (made < 10) return
    endAtLast(socket)
    socket.destroy()
  })
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_000))
  client.resume()
  await once(client, 'close')
  t.equal(made, 10)
})
