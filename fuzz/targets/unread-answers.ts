// Clients that send requests and read no response: the responses must not pile up in the gateway's memory. Bounded in
// connections, requests and time.

import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { foundWithin } from '../../test/support/until.ts'
import { type Finding, finding } from '../finding.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { GatewayProcess } from '../system/gateway-process.ts'

const connections = 3
const requestsEach = 20_000
const atOnce = 500
const longestMs = 4_000
// A request that waits takes some 13 KB with its response, so that all of them would take 800 MB. The young generation of the heap
// grows by up to 96 MiB in a process that was idle.
const maxGrowthBytes = 128 * 1024 * 1024

export const floodWithoutReading = async (gateway: GatewayProcess, key: string): Promise<Finding[]> => {
  const before = gateway.residentBytes()
  const deadline = performance.now() + longestMs
  const some = bytesWithKey(requestText({ target: '/api/v1/weather/district/3026' }).repeat(atOnce), key)
  const flood = async (): Promise<void> => {
    const socket = connect(gateway.api)
    socket.on('error', () => {})
    socket.pause()
    for (
      let sent = 0;
      sent < requestsEach && performance.now() < deadline && !socket.destroyed;
      sent += atOnce
    ) {
      socket.write(some)
      const left = Math.max(1, deadline - performance.now())
      await foundWithin(left, () => socket.writableLength === 0 || socket.destroyed)
    }
    await pause(Math.max(0, deadline - performance.now()))
    socket.destroy()
  }
  let most = before
  const watching = setInterval(() => {
    most = Math.max(most, gateway.residentBytes())
  }, 50)
  await Promise.all(Array.from({ length: connections }, flood))
  clearInterval(watching)
  const grownMiB = Math.round((most - before) / 2 ** 20)
  return most - before > maxGrowthBytes
    ? [
        finding(
          'answers that nobody reads pile up in memory',
          `${grownMiB} MiB more with ${connections} connections`,
        ),
      ]
    : []
}
