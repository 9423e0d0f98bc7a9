// The rules for the gateway as a whole after every batch of cases: it is alive, answers a good request soon, stays below a
// memory bound, serves its metrics, and its log is clean.

import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type Finding, finding, slowness } from '../finding.ts'
import type { GatewayProcess } from './gateway-process.ts'
import type { System } from './system.ts'

/** On top of some 330 MiB that a gateway needs with all cells of the box in use. */
const maxResidentBytes = 700 * 1024 * 1024
/** For a good request, on a busy machine. */
export const answeredWithinMs = 2_500

const diesWithinMs = 300
// Some gateways speak TLS, with a certificate of the tests.
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })

const metricLine = /^(#.*|[a-zA-Z_:][\w:]*(\{.*\})? (-?[\d.e+-]+|NaN|[+-]Inf))$/

export const checkHealth = async (system: System): Promise<Finding[]> => {
  const gateway = system.gateway()
  const found = await checkGoodRequest(system)
  // The exit of a process that has just died is not reported yet.
  if (found.length > 0) await pause(diesWithinMs)
  if (!gateway.isAlive()) return gateway.findings()
  return [...found, ...(await checkMetrics(gateway)), ...checkMemory(gateway), ...gateway.findings()]
}

const checkMemory = (gateway: GatewayProcess): Finding[] => {
  const bytes = gateway.residentBytes()
  return bytes > maxResidentBytes
    ? [finding('the process is too large', `${Math.round(bytes / 2 ** 20)} MiB resident`)]
    : []
}

const checkGoodRequest = async (system: System): Promise<Finding[]> => {
  const started = performance.now()
  try {
    const { statusCode, body } = await request(`${system.gateway().apiUrl}/api/v1/weather/district/3026`, {
      dispatcher,
      headers: { 'x-api-key': system.keys[0].key },
      signal: AbortSignal.timeout(answeredWithinMs * 4),
    })
    const text = await body.text()
    const tookMs = performance.now() - started
    if (statusCode !== 200) return [finding('a good request is not answered 200', `${statusCode}: ${text}`)]
    return tookMs > answeredWithinMs ? [slow(`${Math.round(tookMs)} ms`)] : []
  } catch (error) {
    return [slow(`${error}`)]
  }
}

const slow = (detail: string): Finding => slowness('a good request is not answered in time', detail)

const checkMetrics = async ({ opsUrl }: GatewayProcess): Promise<Finding[]> => {
  try {
    const { statusCode, body } = await request(`${opsUrl}/metrics`, {
      signal: AbortSignal.timeout(answeredWithinMs * 4),
    })
    const lines = (await body.text()).split('\n').filter(line => line !== '')
    const wrong = lines.find(line => !metricLine.test(line))
    if (statusCode !== 200 || lines.length < 10 || wrong !== undefined)
      return [finding('metrics can not be read', `${statusCode}, ${lines.length} lines, ${wrong}`)]
    return []
  } catch (error) {
    return [slowness('metrics can not be read', `${error}`)]
  }
}
