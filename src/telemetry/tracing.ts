// Traces for OpenTelemetry: a span for each request, and below it those for steps of the store and calls of the provider.
// Switched on by the standard variables of OpenTelemetry; otherwise nothing of it is loaded. A span holds no URL,
// no key and no text of a consumer.

import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout } from 'node:timers/promises'
import type { Attributes, Span, Tracer } from '@opentelemetry/api'
import type { Sampler, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Clock } from '../common/clock.ts'
import { codeOf, messageOf } from '../common/errors.ts'
import type { AnsweredRequest } from './access-log.ts'
import type { Log } from './log.ts'
import { createThrottle } from './throttle.ts'

/** The span of a caller, as `traceparent` has it. */
type ParentSpan = { readonly traceId: string; readonly spanId: string; readonly isSampled: boolean }

type RequestTrace = { readonly traceId: string; end(request: AnsweredRequest): void }

type Bytes = { bytes(...given: never[]): AsyncGenerator<Uint8Array> }

export type Tracing = {
  /** Begins the span of a request. What `next` starts belongs to it. */
  request(parent: ParentSpan | undefined, next: () => void): RequestTrace
  /** A store whose steps have spans. */
  store<Of extends object & { readonly kind: string }>(store: Of): Of
  /** A call of the provider with spans. @param origin of the provider */
  call<Of extends Bytes>(call: Of, origin: string): Of
  /** Exports what is left, for `closeWithinMs` at most. @returns whether nothing is under way any more */
  close(): Promise<boolean>
}

type Environment = Readonly<Record<string, string | undefined>>
type Limits = { readonly closeWithinMs: number }

/** Undefined unless the environment switches it on, and when it can't be. */
export const openTracing = async (
  env: Environment,
  log: Log,
  clock: Clock,
  { closeWithinMs }: Limits,
): Promise<Tracing | undefined> => {
  if (!isOn(env)) return undefined
  const wrong = faultOf(env)
  if (wrong !== undefined) {
    log.warn({ reason: wrong }, 'tracing disabled')
    return undefined
  }
  try {
    return await loadTracing(env, log, clock, closeWithinMs)
  } catch (error) {
    // A variable for the whole cluster must not keep the gateway from starting.
    log.warn({ reason: `can't load OpenTelemetry: ${messageOf(error)}` }, 'tracing disabled')
    return undefined
  }
}

const isOn = (env: Environment): boolean => {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return false
  return Boolean(
    env.OTEL_TRACES_EXPORTER || env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  )
}

const faultOf = (env: Environment): string | undefined => {
  const exporter = env.OTEL_TRACES_EXPORTER || 'otlp'
  if (exporter !== 'otlp') return `OTEL_TRACES_EXPORTER must be otlp or none, got "${exporter}"`
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/json'
  // A collector takes JSON where it takes protobuf over HTTP, which is what the standard has by default.
  return /^http\/(json|protobuf)$/.test(protocol)
    ? undefined
    : `OTEL_EXPORTER_OTLP_PROTOCOL must be http/json, got "${protocol}"`
}

/** Logs failed exports, a line a minute: the exporter itself reports them to nobody. */
const withFailuresLogged = (exporter: SpanExporter, log: Log, clock: Clock): SpanExporter => {
  const throttle = createThrottle(clock)
  return {
    export: (spans, done) =>
      exporter.export(spans, result => {
        const { error } = result
        if (error)
          throttle('export', left =>
            log.warn({ reason: messageOf(error), spans: spans.length, ...left }, 'trace export failed'),
          )
        done(result)
      }),
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}

const loadTracing = async (
  env: Environment,
  log: Log,
  clock: Clock,
  closeWithinMs: number,
): Promise<Tracing> => {
  const api = await import('@opentelemetry/api')
  const sdk = await import('@opentelemetry/sdk-trace')
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = await import(
    '@opentelemetry/resources'
  )
  const provider = new sdk.TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'abohawa' }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(env, sdk),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: withFailuresLogged(new OTLPTraceExporter(), log, clock),
        ...numbersOf(env, {
          scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
          exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
          maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
          maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
        }),
      }),
    ],
  })
  const tracer = provider.getTracer('abohawa')
  const running = new AsyncLocalStorage<Span>()
  const beginChild = childrenOf(api, tracer, () => running.getStore())
  return {
    request: (parent, next) => {
      const traceFlags = parent?.isSampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE
      const context = parent
        ? api.trace.setSpanContext(api.ROOT_CONTEXT, { ...parent, traceFlags, isRemote: true })
        : api.ROOT_CONTEXT
      const span = tracer.startSpan('request', { kind: api.SpanKind.SERVER }, context)
      running.run(span, next)
      return {
        traceId: span.spanContext().traceId,
        end: request => {
          span.updateName(`${request.method} ${request.endpoint}`)
          span.setAttributes(attributesOf(request))
          if (request.status >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR })
          span.end()
        },
      }
    },
    store: store => traceStore(store, beginChild),
    call: (call, origin) => traceCall(call, origin, beginChild),
    close: () => {
      const exported = provider.shutdown().then(
        () => true,
        () => true,
      )
      return Promise.race([exported, setTimeout(closeWithinMs, false, { ref: false })])
    },
  }
}

const attributesOf = (request: AnsweredRequest): Attributes => {
  const fields = {
    'http.request.method': request.method,
    'http.response.status_code': request.status,
    'network.protocol.version': request.httpVersion,
    'client.address': request.address,
    'error.type': request.reason,
    'abohawa.endpoint': request.endpoint,
    'abohawa.request_id': request.requestId,
    'abohawa.key_id': request.keyId,
    'abohawa.cell': request.cell,
    'abohawa.cache': request.cache,
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** Begins a span below the request that runs, and returns what ends it; undefined where no request runs. */
type BeginChild = (name: string, attributes: Attributes) => ((error?: unknown) => void) | undefined

const childrenOf =
  (
    { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace }: typeof import('@opentelemetry/api'),
    tracer: Tracer,
    running: () => Span | undefined,
  ): BeginChild =>
  (name, attributes) => {
    const parent = running()
    if (!parent) return undefined
    const kind = SpanKind.CLIENT
    const span = tracer.startSpan(name, { kind, attributes }, trace.setSpan(ROOT_CONTEXT, parent))
    return error => {
      if (error !== undefined) {
        span.setAttribute('error.type', codeOf(error))
        span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) })
      }
      span.end()
    }
  }

const traceStore = <Of extends object & { readonly kind: string }>(store: Of, beginChild: BeginChild): Of => {
  const system = store.kind === 'redis' ? 'redis' : 'sqlite'
  return new Proxy(store, {
    get: (of, name, receiver) => {
      const member: unknown = Reflect.get(of, name, receiver)
      if (typeof member !== 'function' || typeof name !== 'string') return member
      return (...args: unknown[]): unknown => {
        const end = beginChild(name, { 'db.system.name': system, 'db.operation.name': name })
        try {
          const result: unknown = Reflect.apply(member, of, args)
          if (!(result instanceof Promise)) end?.()
          else if (end) result.then(() => end(), end)
          return result
        } catch (error) {
          end?.(error)
          throw error
        }
      }
    },
  })
}

const traceCall = <Of extends Bytes>(call: Of, origin: string, beginChild: BeginChild): Of => {
  const { hostname, port, protocol } = new URL(origin)
  const attributes = {
    'http.request.method': 'GET',
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  }
  const bytes = async function* (...args: never[]): AsyncGenerator<Uint8Array> {
    const end = beginChild('GET', attributes)
    let failure: unknown
    try {
      yield* call.bytes(...args)
    } catch (error) {
      failure = error
      throw error
    } finally {
      end?.(failure)
    }
  }
  return { ...call, bytes }
}

const numbersOf = <Name extends string>(
  env: Environment,
  variables: Record<Name, string>,
): Partial<Record<Name, number>> =>
  Object.fromEntries(
    Object.entries<string>(variables)
      .map(([name, variable]) => [name, Number(env[variable])])
      .filter(([, value]) => Number.isSafeInteger(value) && Number(value) > 0),
  ) as Partial<Record<Name, number>>

/** As `OTEL_TRACES_SAMPLER` says; what is not known is as if it were not there. */
const samplerOf = (env: Environment, sdk: typeof import('@opentelemetry/sdk-trace')): Sampler => {
  const { AlwaysOnSampler, AlwaysOffSampler, ParentBasedSampler, TraceIdRatioBasedSampler } = sdk
  const [, isParentBased, root] =
    /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(env.OTEL_TRACES_SAMPLER ?? '') ?? []
  const ratio = env.OTEL_TRACES_SAMPLER_ARG ? Number(env.OTEL_TRACES_SAMPLER_ARG) : 1
  const sampler =
    root === 'always_off'
      ? new AlwaysOffSampler()
      : root === 'traceidratio'
        ? new TraceIdRatioBasedSampler(ratio >= 0 && ratio <= 1 ? ratio : 1)
        : new AlwaysOnSampler()
  return root !== undefined && isParentBased === undefined
    ? sampler
    : new ParentBasedSampler({ root: sampler })
}
