// Without it traces could lack spans, show a key, load code that is not needed, or delay a stop.

import { readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createKey } from '../scenarios/set-up.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { startCommand } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

type Attributes = { key: string; value: { stringValue?: string; intValue?: number | string } }[]
type Span = Record<
  'name' | 'traceId' | 'spanId' | 'parentSpanId' | 'startTimeUnixNano' | 'endTimeUnixNano',
  string
> & { kind: number; attributes: Attributes }
type Export = { resourceSpans: { resource: { attributes: Attributes }; scopeSpans: { spans: Span[] }[] }[] }

const provider = await startProviderHere(t, undefined, null)
// The gateways of this file follow one another on one store, with one key.
const settings = { ...(await singleGatewayEnv(t, provider.url)), ABOHAWA_OPS__PORT: '0' }
const key = await createKey(settings, 'free')
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerSpan = '00f067aa0ba902b7'

const startReceiver = async (t: Test) => {
  const exports: Export[] = []
  const types = new Set<string | undefined>()
  const { url } = await startScriptedProvider(t, async (request, response) => {
    const body = await buffer(request)
    types.add(`${request.method} ${request.url} ${request.headers['content-type']}`)
    exports.push(JSON.parse(body.toString()))
    response.setHeader('content-type', 'application/json').end('{}')
  })
  return {
    ...{ url, types, exports },
    spans: () =>
      exports
        .flatMap(({ resourceSpans }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans))
        .flatMap(({ spans }) => spans),
  }
}

const serve = async (t: Test, env: Record<string, string>) => {
  const modules = join(t.testdir(), 'modules')
  writeFileSync(modules, '')
  const hook = join(import.meta.dirname, '..', 'support', 'loaded-modules.ts')
  const started = await startCommand(t, ['serve'], ['api', 'ops'], {
    ...settings,
    ...env,
    NODE_OPTIONS: `--import=${hook}`,
    LOADED_MODULES: modules,
  })
  const get = (path: string, headers: Record<string, string> = {}, presented: string | null = key) =>
    sendRequest(`${started.urls.api}/api/v1${path}`, { key: presented, headers })
  const loaded = (): string =>
    readFileSync(modules, 'utf8')
      .split('\n')
      .filter(url => url.includes('@opentelemetry'))
      .join('\n')
  return { ...started, get, loaded }
}

const fieldsOf = ({ attributes }: Pick<Span, 'attributes'>) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]))

t.test('a miss is a trace from the request to store and provider, below the span of the caller', async t => {
  const receiver = await startReceiver(t)
  const gateway = await serve(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_SERVICE_NAME: 'weather',
  })
  const { status } = await gateway.get('/weather/district/3026', {
    traceparent: `00-${traceId}-${callerSpan}-01`,
    'x-request-id': 'traced',
  })
  t.equal(status, 200)
  const find = (what: string, matches: (span: Span) => boolean) =>
    until(what, () => receiver.spans().find(span => span.traceId === traceId && matches(span)))
  const request = await find('the span of the request', ({ kind }) => kind === 2)
  t.equal(request.parentSpanId, callerSpan)
  t.hasStrict(request, { name: 'GET weather' })
  t.match(fieldsOf(request), {
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'abohawa.request_id': 'traced',
    'abohawa.cell': '23.7,90.4',
    'abohawa.cache': /^fwd=miss/,
  })
  const call = await find('the span of the provider', span => 'server.port' in fieldsOf(span))
  t.hasStrict(call, { name: 'GET', kind: 3, parentSpanId: request.spanId })
  t.hasStrict(fieldsOf(call), {
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(provider.url).port),
  })
  t.ok(BigInt(call.startTimeUnixNano) >= BigInt(request.startTimeUnixNano))
  t.ok(BigInt(call.endTimeUnixNano) > BigInt(call.startTimeUnixNano))
  const step = await find('a span of the store', span => 'db.system.name' in fieldsOf(span))
  t.hasStrict(step, { kind: 3, parentSpanId: request.spanId })
  t.equal(fieldsOf(step)['db.system.name'], 'sqlite')
  t.strictSame([...receiver.types], ['POST /v1/traces application/json'])
  const [first] = receiver.exports
  t.has(fieldsOf(first?.resourceSpans[0]?.resource ?? { attributes: [] }), { 'service.name': 'weather' })

  await gateway.get('/weather/district/3026')
  const own = await until('a trace of the gateway', () =>
    receiver.spans().find(span => span.traceId !== traceId && span.kind === 2),
  )
  t.notOk(own.parentSpanId)
  t.equal((await gateway.get(`/weather/district/${key}`, {}, null)).status, 401)
  await until('the span of the 401', () =>
    receiver.spans().find(span => fieldsOf(span)['error.type'] === 'missing'),
  )
  t.notMatch(JSON.stringify(receiver.exports), key)
  t.match(gateway.loaded(), /@opentelemetry.sdk-trace/)
})

t.test('what the caller has not sampled is not exported, and the rest at the end', async t => {
  const receiver = await startReceiver(t)
  const gateway = await serve(t, {
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    ABOHAWA_TEST_TRACING__CLOSE_WITHIN: '1m',
  })
  await gateway.get('/weather/district/3026', { traceparent: `00-${traceId}-${callerSpan}-00` })
  await gateway.get('/locations?type=division')
  gateway.child.kill('SIGTERM')
  t.equal(await gateway.exited, 0)
  const requests = receiver.spans().filter(({ kind }) => kind === 2)
  t.hasStrict(requests, [{ name: 'GET locations' }])
  t.equal(requests.length, 1)
  t.notOk(receiver.spans().some(span => span.traceId === traceId))
})

t.test('without the variables nothing of it is loaded, nor where they switch it off', async t => {
  const gateway = await serve(t, {})
  t.equal((await gateway.get('/weather/coords/22.1/90.1')).status, 200)
  t.equal(gateway.loaded(), '')

  const loaded: string[] = []
  const hooks = registerHooks({
    load: (url, context, next) => {
      loaded.push(url)
      return next(url, context)
    },
  })
  t.teardown(() => hooks.deregister())
  const { openTracing } = await import('../../src/telemetry/tracing.ts')
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }
  for (const [env, reason] of [
    [{ ...endpoint, OTEL_SDK_DISABLED: 'true' }, undefined],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, undefined],
    [{ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /OTLP_PROTOCOL must be http/],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /OTEL_TRACES_EXPORTER must be otlp or none, got .*zipkin/],
  ] as const) {
    const lines: string[] = []
    const log = createLog('info', { write: line => void lines.push(line) })
    t.equal(await openTracing(env, log, systemClock, { closeWithinMs: 1 }), undefined, JSON.stringify(env))
    t.equal(lines.length, reason === undefined ? 0 : 1)
    if (reason) t.match(lines[0], reason)
  }
  t.match(loaded.join(), '/tracing.ts', 'the modules are seen')
  t.notMatch(loaded.join(), '@opentelemetry')
})

t.test('a collector that is away costs its spans and a line of the log', async t => {
  const gateway = await serve(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  })
  const requests = async () => {
    for (let i = 0; i < 20; i++) t.equal((await gateway.get('/weather/district/3026')).status, 200)
  }
  await requests()
  await until('the line of the log', () => gateway.lines.join('\n').includes('"msg":"trace export failed"'))
  await requests()
  gateway.child.kill('SIGTERM')
  t.equal(await gateway.exited, 0)
  const lines = gateway.lines.join('\n').split('trace export failed').length - 1
  t.ok(lines <= 2, `${lines} lines, one a minute`)
})

t.test('a collector that hangs holds up no stop', async t => {
  const silent = await startScriptedProvider(t, () => {})
  const gateway = await serve(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: silent.url,
    // Whoever waits for it does not end within the limit of a test.
    OTEL_EXPORTER_OTLP_TIMEOUT: '3600000',
    OTEL_BSP_EXPORT_TIMEOUT: '3600000',
  })
  t.equal((await gateway.get('/weather/district/3026')).status, 200)
  gateway.child.kill('SIGTERM')
  t.equal(await gateway.exited, 0)
  t.match(gateway.lines.join('\n'), /"msg":"stopped"/)
})
