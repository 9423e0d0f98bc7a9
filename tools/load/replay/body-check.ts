// Checks kept bodies against the API schema, and makes digests of what does not change with time. Runs after the replay, because it
// costs more than sending.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import {
  apiPrefix,
  type EndpointName,
  endpointNames,
  endpoints,
  isList,
  type ListEndpoint,
  templateOf,
} from 'abohawa/common/endpoints.ts'
import { messageOf } from 'abohawa/common/errors.ts'
import { isWithin, ranges } from 'abohawa/weather/ranges.ts'
import * as z from 'zod'
import type { ReplayResult } from '../report/result.ts'
import type { KeptBody } from './kept-bodies.ts'

// No response of a gateway is larger.
const maxBytes = 16 * 1_048_576

const refusal = z.looseObject({
  error: z.string().min(1),
  code: z.string().regex(/^[a-z][a-z0-9_]+$/),
  // Missing in gateways before 1.1 and in responses of proxies.
  parameter: z.string().min(1).optional(),
  doc_url: z
    .string()
    .regex(/\/docs#error-/)
    .optional(),
})
const anyJson = z.json()

type Json = Record<string, unknown>
type Operation = { responses: { 200: { content: { 'application/json': { schema: Json } } } } }
type Document = { paths: Record<string, { get: Operation }>; components: { schemas: Json } }

/** The schemas of 200 responses by endpoint, without additional fields. */
const readSchemas = (): Readonly<Record<EndpointName, z.ZodType>> => {
  const text = readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8')
  const { paths, components }: Document = JSON.parse(
    text.replaceAll('#/components/schemas/', '#/$defs/'),
    (_, part) => (part?.type === 'object' ? { ...part, additionalProperties: false } : part),
  )
  const schemaOf = (name: EndpointName): z.ZodType => {
    const { schema } =
      paths[apiPrefix + templateOf(name)]?.get.responses[200].content['application/json'] ?? {}
    return z.fromJSONSchema({ ...schema, $defs: components.schemas } as z.core.JSONSchema.JSONSchema)
  }
  return Object.fromEntries(endpointNames.map(name => [name, schemaOf(name)])) as Record<
    EndpointName,
    z.ZodType
  >
}
let schemas: ReturnType<typeof readSchemas> | undefined

export const checkBodies = (kept: readonly KeptBody[]): NonNullable<ReplayResult['bodies']> => {
  const faults = new Map<string, { path: string; fault: string; count: number }>()
  for (const answer of kept) {
    const fault = faultOf(answer)
    if (fault === undefined) continue
    const name = `${answer.path} ${fault}`
    const found = faults.get(name) ?? { path: answer.path, fault, count: 0 }
    found.count += 1
    faults.set(name, found)
  }
  return { checked: kept.length, faults: [...faults.values()] }
}

const faultOf = (answer: KeptBody): string | undefined => {
  const parsed = jsonOf(answer)
  if ('fault' in parsed) return parsed.fault
  const { endpoint, status, path } = answer
  schemas ??= readSchemas()
  const schema = status >= 400 ? refusal : endpoint === 'other' ? anyJson : schemas[endpoint]
  const { error } = schema.safeParse(parsed.value)
  if (error) {
    const [issue] = error.issues
    const where = issue && issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
    return `status ${status}: ${where}${issue?.message ?? 'does not match the schema'}`
  }
  if (status !== 200 || endpoint === 'other') return undefined
  if (isList(endpoint)) return faultOfList(endpoint, path, parsed.value as readonly Content[])
  const content = parsed.value as Content
  return faultOfContent(endpoint, path, content) ?? faultOfValues(content)
}

const decoders: Readonly<Record<string, typeof gunzipSync>> = { br: brotliDecompressSync, gzip: gunzipSync }

const jsonOf = ({ body, encoding }: KeptBody): { value: unknown } | { fault: string } => {
  let text: string
  try {
    const bytes = decoders[encoding ?? '']?.(body, { maxOutputLength: maxBytes }) ?? body
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    return { fault: `the body is not valid ${encoding ?? 'UTF-8'}: ${messageOf(error)}` }
  }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { fault: 'the body is not JSON' }
  }
}

type Columns = Readonly<Record<string, unknown>>
type Content = {
  readonly location?: { readonly type?: unknown; readonly id?: unknown; readonly slug_en?: unknown }
  readonly results?: readonly unknown[]
  readonly current?: Columns
  readonly hourly?: Columns
  readonly daily?: Columns
}

/** Checks each element as the endpoint of one place. */
const faultOfList = (
  endpoint: ListEndpoint,
  path: string,
  contents: readonly Content[],
): string | undefined => {
  const { searchParams } = new URL(path, 'http://target')
  const places = [...new Set(searchParams.get('places')?.split(','))]
  if (contents.length !== places.length) return `has ${contents.length} places instead of ${places.length}`
  const days = searchParams.get('days')
  const query = days === null ? '' : `?days=${days}`
  for (const [i, content] of contents.entries()) {
    if ('error' in content) continue
    const place = places[i] ?? ''
    const isPoint = place.startsWith('coords/')
    const one = isPoint ? 'coords' : endpoint === 'forecast_places' ? 'forecast' : 'weather'
    const path = `${apiPrefix}/${one}/${place}${query}`
    const fault = faultOfContent(one, path, content) ?? faultOfValues(content)
    if (fault !== undefined) return `${place}: ${fault}`
  }
  return undefined
}

/** Checks what a schema can't: the place, equal lengths, and possible values. */
const faultOfContent = (endpoint: EndpointName, path: string, content: Content): string | undefined => {
  const url = new URL(path, 'http://target')
  const [, , , , type, id] = url.pathname.split('/').map(decodeURIComponent)
  if (endpoints[endpoint].path.endsWith('/:type/:id')) {
    const { location } = content
    if (location?.type !== type || (location?.id !== id && location?.slug_en !== id?.toLowerCase()))
      return `the place is ${location?.type} ${location?.id}, not the requested one`
  }
  const days = url.searchParams.get('days')
  for (const [name, columns] of Object.entries({ hourly: content.hourly, daily: content.daily })) {
    if (!columns) continue
    const lengths = new Set(Object.values(columns).map(column => (column as unknown[]).length))
    if (lengths.size !== 1) return `the columns of ${name} have different lengths`
    if (name === 'daily' && endpoint === 'forecast' && days !== null && !lengths.has(Number(days)))
      return `has ${[...lengths][0]} days instead of ${days}`
    const times = columns.time as string[]
    if (times.some((time, i) => i > 0 && time <= (times[i - 1] as string)))
      return `the times of ${name} do not ascend`
  }
  return undefined
}

// Numbers that the schema allows but that can't occur, such as a weather code of 40.
const faultOfValues = ({ current = {}, hourly = {}, daily = {} }: Content): string | undefined => {
  for (const [section, columns] of Object.entries({ current, hourly, daily }))
    for (const [name, values] of Object.entries(columns)) {
      const range = Object.entries(ranges).find(([variable]) => variable === name)?.[1]
      const wrong =
        range && [values].flat().find(value => typeof value === 'number' && !isWithin(range, value))
      if (wrong !== undefined) return `${section}.${name} is ${wrong}, which can't occur`
    }
  return undefined
}

/** A line for each JSON body: path, status and digest. */
export const digestLines = (kept: readonly KeptBody[]): string =>
  kept
    .flatMap(answer => {
      const parsed = jsonOf(answer)
      if ('fault' in parsed) return []
      return `${JSON.stringify({ path: answer.path, status: answer.status, digest: digestOf(parsed.value) })}\n`
    })
    .sort()
    .join('')

// Only the number of values in these stays the same.
const changing = ['current', 'hourly', 'daily', 'reset_at']

const digestOf = (value: unknown): string => {
  const unchanging = JSON.stringify(value, (name, part: unknown) => {
    // Contains the gateway's address.
    if (name === 'doc_url') return undefined
    if (!changing.includes(name)) return part
    if (!(part instanceof Object)) return typeof part
    return Object.entries(part).map(([column, values]) => [
      column,
      Array.isArray(values) ? values.length : typeof values,
    ])
  })
  return createHash('sha256').update(unchanging).digest('hex').slice(0, 32)
}
