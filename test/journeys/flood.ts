// A flood, as a separate process and from its own addresses: connections that send many requests at once and read no response. Prints its state as a
// line of JSON four times a second, and ends by itself where nobody ends it.

import { connect } from 'node:net'
import { parseArgs } from 'node:util'
import { patienceMs } from '../support/until.ts'

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    sockets: { type: 'string', default: '1' },
    requests: { type: 'string', default: '1' },
    /** The connections come from so many addresses in turn. */
    addresses: { type: 'string', default: '1' },
    /** One request, with \\r and \
     written as two characters each. */
    request: { type: 'string', default: '' },
  },
})
const { hostname, port } = new URL(values.url)
const request = values.request.replaceAll('\\r', '\r').replaceAll('\\n', '\n')
const bytes = Buffer.from(request.repeat(Number(values.requests)))
const state = { connected: 0, closed: 0 }

for (let i = 0; i < Number(values.sockets); i++) {
  const socket = connect({
    port: Number(port),
    host: hostname,
    localAddress: `127.0.0.${2 + (i % Number(values.addresses))}`,
  })
  // Nothing is read, so that the kernel's buffers fill and the server has to buffer its responses.
  socket.pause()
  socket.on('error', () => {})
  socket.on('connect', () => {
    state.connected += 1
    socket.write(bytes)
  })
  socket.on('close', () => {
    state.closed += 1
  })
}
setInterval(() => process.stdout.write(`${JSON.stringify(state)}\n`), 250)
setTimeout(() => process.exit(), patienceMs)
