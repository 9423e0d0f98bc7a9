// Handles one call to /v1/forecast: key, limits, fault, parameters, weather, delivery. Clock and fault mode are read when the call
// leaves the queue; latency and a closed gate only delay the response.

import type { IncomingMessage } from 'node:http'
import { type Answer, deliver, disconnectOf, type HttpCall, waitFor } from './delivery.ts'
import { writeDocument } from './document.ts'
import { type Delivery, type Fault, faultOf, limitFaults } from './faults.ts'
import { forecast } from './forecast.ts'
import { type ForecastRequest, readForecastRequest } from './forecast-request.ts'
import type { Limits } from './limits.ts'
import { errorBody, listIn, type Parameters, parametersIn, Refusal } from './parameters.ts'
import type { Moment } from './sections.ts'
import type { CallRecord, Steering } from './steering.ts'

export type ForecastParts = {
  readonly steering: Steering
  readonly limits: Limits
  readonly apiKey: string | undefined
  /** Seed, time and model run, which decide the weather. */
  moment(): Moment
}

type Outcome = { readonly answer: Answer; readonly weight: number; readonly delivery: Delivery }

/** Handles one call. Never throws: an error becomes a response. */
export const answerForecast = async (parts: ForecastParts, httpCall: HttpCall): Promise<void> => {
  const { steering, limits, apiKey } = parts
  const { request } = httpCall
  const call = steering.arrive(request.method ?? '')
  httpCall.response.once('close', () => steering.leave())
  const address = request.socket.remoteAddress ?? ''
  // Like the real host: key and limits are checked first, without faults or latency.
  const refuse = async (answer: Answer, weight: number): Promise<void> => {
    limits.add(address, weight)
    steering.answered(call, answer.status, weight)
    await deliver(httpCall, answer, 'whole')
  }
  try {
    const given = parametersIn(request.url?.split('?', 2)[1] ?? '')
    steering.describe(call, listIn(given, 'latitude')?.length ?? 0, withoutKey(given))
    const refusal = checkKey(apiKey, request, given) ?? limits.check(address)
    if (refusal) return await refuse(refusal, 0)
    const full = await limits.enqueue(address, () => serve(parts, httpCall, given, call, address))
    if (full) await refuse(full, 0)
  } catch (error) {
    await refuse(failureOf(error), 1)
  }
}

const serve = async (
  { steering, limits, moment }: ForecastParts,
  httpCall: HttpCall,
  given: Parameters,
  call: CallRecord,
  address: string,
): Promise<void> => {
  const startedAt = performance.now()
  const { answer, weight, delivery } = await outcomeOf(
    given,
    faultOf(steering.takeFaultMode()),
    limits,
    moment(),
  )
  // The latency includes the computation, as for a real host.
  await waitFor(steering.latencyMs - (performance.now() - startedAt), httpCall.disconnected)
  await Promise.race([steering.opened, disconnectOf(httpCall.disconnected)])
  limits.add(address, weight)
  const silent = delivery === 'reset' || delivery === 'hang'
  steering.answered(call, silent ? null : answer.status, weight)
  await deliver(httpCall, answer, delivery)
  // A call keeps its place in the queue until its body is sent.
  if (!httpCall.response.writableFinished) await disconnectOf(httpCall.disconnected)
}

const outcomeOf = async (
  given: Parameters,
  fault: Fault,
  limits: Limits,
  moment: Moment,
): Promise<Outcome> => {
  const delivery = fault.delivery ?? 'whole'
  try {
    const request = fault.answer ? undefined : readForecastRequest(given)
    const answer = fault.answer ?? (request ? limits.checkWeight(request.weight) : emptyAnswer)
    if (answer || !request) return { answer: answer ?? emptyAnswer, weight: failureWeight(answer), delivery }
    return { answer: await weatherAnswer(request, fault, moment), weight: request.weight, delivery }
  } catch (error) {
    return { answer: failureOf(error), weight: 1, delivery }
  }
}

const weatherAnswer = async (requested: ForecastRequest, fault: Fault, moment: Moment): Promise<Answer> => {
  const request = fault.request?.(requested) ?? requested
  const document = await forecast(request, moment)
  const body = writeDocument(fault.document?.(document) ?? document)
  return { status: 200, type: 'json', body: fault.text?.(body) ?? body }
}

// The real host sends its 200 before it notices missing coordinates.
const emptyAnswer: Answer = { status: 200, type: 'json', body: '' }

const failureWeight = (answer: Answer | undefined): number => (answer?.status === 429 ? 0 : 1)

const failureOf = (error: unknown): Answer => {
  const [status, reason] =
    error instanceof Refusal ? [error.status, error.message] : [500, 'Something went wrong.']
  return { status, type: 'json', body: errorBody(reason) }
}

const checkKey = (
  apiKey: string | undefined,
  request: IncomingMessage,
  given: Parameters,
): Answer | undefined => {
  if (apiKey === undefined) return undefined
  const key = request.headers['x-api-key'] ?? given.get('apikey')
  if (key === undefined) return limitFaults.keyMissing.answer
  return key === apiKey ? undefined : limitFaults.keyUnknown.answer
}

// /control is open to every client, so keys are left out.
const withoutKey = (given: Parameters): Record<string, string> => {
  const query = Object.fromEntries(given)
  return query.apikey === undefined ? query : { ...query, apikey: '***' }
}
