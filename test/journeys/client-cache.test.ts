// A conforming client cache in front of the gateway: it keeps weather for its max-age, whatever the age of the weather, and
// revalidates it after that. undici's cache, and a real gateway.

import t, { type Test } from 'tap'
import { Agent, type Dispatcher, interceptors, request } from 'undici'
import { createCalendar, hourMs, minuteMs } from '../../src/common/calendar.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)

type PassedRequest = { ifNoneMatch: string | undefined; status: number }

/** A caching client, and those of its requests that reached the gateway. */
const cachingClient = (t: Test) => {
  const passed: PassedRequest[] = []
  const record: Dispatcher.DispatcherComposeInterceptor = dispatch => (options, handler) => {
    const given = new Map(Object.entries((options.headers ?? {}) as Record<string, string>))
    return dispatch(options, {
      ...forwarding(handler),
      onResponseStart: (controller, status, headers, message) => {
        passed.push({ ifNoneMatch: given.get('if-none-match'), status })
        handler.onResponseStart?.(controller, status, headers, message)
      },
    })
  }
  const agent = new Agent().compose(record, interceptors.cache({ type: 'private' }))
  t.teardown(() => agent.close())
  const get = async (url: string, key: string | undefined) => {
    const { statusCode, headers, body } = await request(url, {
      dispatcher: agent,
      headers: key === undefined ? {} : { 'x-api-key': key },
    })
    return { status: statusCode, headers, text: await body.text() }
  }
  return { get, passed }
}

const forwarding = (handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler => ({
  onRequestStart: (...given) => handler.onRequestStart?.(...given),
  onResponseData: (...given) => handler.onResponseData?.(...given),
  onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
  onResponseError: (...given) => handler.onResponseError?.(...given),
})

// The client's cache compares `date` with the machine's clock: an hour ahead of it, nothing seems old.
const hour = (Math.floor(Date.now() / hourMs) + 2) * hourMs
const at = (minute: number, second = 0): number => hour + minute * minuteMs + second * 1_000

const setUp = async (t: Test) => {
  const clock = manualClock(at(5))
  await provider.steer({ now: new Date(at(5)).toISOString() })
  const gateway = await startGateway(t, { providerUrl: provider.url, clock })
  const url = `${gateway.apiUrl}/api/v1/weather/district/3026`
  const { get, passed } = cachingClient(t)
  // Another client loads it first, so that the weather has some age when the cache first sees it.
  await gateway.get('/weather/district/3026')
  return {
    clock,
    passed,
    getWeather: (key: string | undefined = gateway.keys.enterprise ?? '') => get(url, key),
    getWithout: () => get(url, undefined),
    otherKey: gateway.keys.free ?? '',
  }
}

t.test('within max-age a client is answered from its cache, with weather of whatever age', async t => {
  const { clock, passed, getWeather } = await setUp(t)
  clock.set(at(50))
  const first = await getWeather()
  t.match(first.headers, {
    'cache-control': 'private, max-age=600',
    'last-modified': new Date(at(5)).toUTCString(),
  })
  const second = await getWeather()
  t.equal(second.text, first.text)
  t.strictSame(passed, [{ ifNoneMatch: undefined, status: 200 }], 'the gateway got one request')
})

t.test('a cache that keys share answers each from its own responses', async t => {
  const { passed, getWeather, getWithout, otherKey } = await setUp(t)
  const first = await getWeather()
  t.equal(first.status, 200)
  t.equal((await getWithout()).status, 401, 'no key')
  t.equal((await getWeather('svc_live_wrong')).status, 401, 'a wrong one')
  const other = await getWeather(otherKey)
  t.not(other.headers['x-ratelimit-limit'], first.headers['x-ratelimit-limit'], 'the figures of its own tier')
  t.strictSame(
    passed.map(({ status }) => status),
    [200, 401, 401, 200],
  )
})

// Whether the body is still current when the client's cache revalidates, and the expected status.
for (const [isRight, status] of [
  [true, 304],
  [false, 200],
] as const)
  t.test(`after max-age a client revalidates its body, and gets ${status}`, async t => {
    const { clock, passed, getWeather } = await setUp(t)
    clock.set(at(59, 58))
    const first = await getWeather()
    t.equal(first.headers['cache-control'], 'private, max-age=2')
    if (!isRight) clock.set(at(60))
    // The client's cache uses the machine's clock and the gateway a manual one, so this takes two seconds.
    const last = await until(
      'the cache revalidates',
      async () => {
        const answer = await getWeather()
        return passed.length >= 2 && answer
      },
      30_000,
    )
    t.strictSame(passed[1], { ifNoneMatch: String(first.headers.etag), status })
    t.equal(last.status, 200)
    t.equal(last.text === first.text, isRight)
    const quarter = at(isRight ? 45 : 60)
    t.equal(JSON.parse(last.text).current.time, createCalendar('Asia/Dhaka').localMinute(quarter))
  })
