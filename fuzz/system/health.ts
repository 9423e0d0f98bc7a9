// The rules for the gateway as a whole after every batch of cases: it is alive, answers a good request soon, stays below a
// memory bound, serves its metrics, and its log is clean.

import { Agent, request } from 'undici'
import { demand, demandInTime, Fault } from '../fault.ts'
import { patienceMs } from '../http/conversation.ts'
import type { System } from './system.ts'

/** On top of some 330 MiB that a gateway needs with all cells of the box in use. */
const maxResidentMiB = 700
/** For a good request, as the gateway's own work. */
export const answeredWithinMs = 2_500
export const goodTarget = '/api/v1/weather/district/3026'
// Some gateways speak TLS, with a certificate of the tests.
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
const metricLine = /^(#.*|[a-zA-Z_:][\w:]*(\{.*\})? (-?[\d.e+-]+|NaN|[+-]Inf))$/

/** @throws Fault */
export const checkHealth = async ({ gateway: now, key }: System): Promise<void> => {
  const gateway = now()
  const fetched = async (url: string, rule: string, headers = {}): Promise<string> => {
    const signal = AbortSignal.timeout(patienceMs)
    const { statusCode, body } = await request(url, { dispatcher, headers, signal })
    const text = await body.text()
    demand(statusCode === 200, rule, `${statusCode}: ${text}`)
    return text
  }
  try {
    const worked = gateway.stopwatch()
    await fetched(gateway.apiUrl + goodTarget, 'a good request is not answered 200', { 'x-api-key': key })
    const tookMs = worked()
    demandInTime(tookMs <= answeredWithinMs, 'a good request is not answered in time', `${tookMs} ms`)
    const metrics = await fetched(`${gateway.opsUrl}/metrics`, "metrics can't be read")
    const lines = metrics.split('\n').filter(line => line !== '')
    demand(lines.length >= 10, "metrics can't be read", `${lines.length} lines`)
    for (const line of lines) demand(metricLine.test(line), "metrics can't be read", line)
    const resident = Math.round(gateway.residentMiB())
    demand(resident <= maxResidentMiB, 'the process is too large', `${resident} MiB resident`)
  } catch (error) {
    await gateway.endsSoon()
    if (!gateway.isAlive()) gateway.check()
    throw error instanceof Fault ? error : new Fault('a good request is not answered in time', error, true)
  }
  gateway.check()
}
