// Holds every response of the API against docs/openapi.json: a known status, the documented headers and no others, a body
// that fits its schema with no unknown field, a documented code. `sendRequest` calls it.

import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { decoded } from '../../fuzz/http/response-reader.ts'

type Described = {
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>
  readonly content?: Readonly<
    Record<string, { readonly schema: object; readonly examples?: Readonly<Record<string, unknown>> }>
  >
}
type Operation = { readonly responses: Readonly<Record<string, Described | { readonly $ref: string }>> }

type Document = {
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>
  readonly components: {
    readonly responses: Readonly<Record<string, Described>>
    readonly headers: Readonly<Record<string, { readonly required?: boolean }>>
  }
}

const document = JSON.parse(
  readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'),
) as Document

/** A schema or a document whose objects have no fields but those that are described. */
const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, closed(each)]))
  return inner.type === 'object' ? { ...inner, additionalProperties: false } : inner
}

// Its own words (`x-unit`, `example`) mean nothing to a validator. As a whole the document is no schema that the schema of
// schemas could judge, so that one is not compiled.
const ajv = new Ajv2020({ strict: false, allErrors: true, meta: false, validateSchema: false })
ajv.addSchema(closed(document) as object, 'api')

const validators = new Map<object, ValidateFunction>()
const validatorOf = (schema: object): ValidateFunction => {
  let validator = validators.get(schema)
  if (!validator) {
    const local = JSON.stringify(closed(schema)).replaceAll('"#/', '"api#/')
    validator = ajv.compile(JSON.parse(local))
    validators.set(schema, validator)
  }
  return validator
}

// What HTTP itself adds.
const ofTransport = new Set([
  ...['connection', 'keep-alive', 'date', 'content-length', 'content-type', 'transfer-encoding'],
])

const pathForms = Object.keys(document.paths).map(path => ({
  path,
  form: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
}))

/** The description of a response; of a path that is none of the endpoints there are errors alone. */
const describedFor = (path: string, status: number): Described | undefined => {
  const operation = document.paths[pathForms.find(({ form }) => form.test(path))?.path ?? '']?.get
  const found = operation?.responses[status]
  if (found && !('$ref' in found)) return found
  return Object.entries(operation?.responses ?? document.paths['/api/v1/locations']?.get.responses ?? {})
    .filter(([given]) => given === String(status))
    .map(([, response]) => ('$ref' in response ? refers(response.$ref) : undefined))[0]
}
const refers = (ref: string): Described | undefined =>
  document.components.responses[ref.split('/').at(-1) ?? '']

export type Received = {
  readonly method: string
  readonly url: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Buffer
}

/** What of a response of the API the document does not allow. */
export const deviations = ({ method, url, status, headers, bytes }: Received): string[] => {
  const { pathname } = new URL(url, 'http://gateway')
  const described = describedFor(pathname, status)
  const what = `${method} ${url} ${status}`
  if (!described) return [`${what} is not documented`]
  const known = described.headers ?? {}
  const found = Object.keys(headers)
    .filter(name => !ofTransport.has(name) && !(name in known))
    .map(name => `${what} has the header ${name}`)
  for (const [name, { $ref }] of Object.entries(known))
    if (document.components.headers[$ref.split('/').at(-1) ?? '']?.required && headers[name] === undefined)
      found.push(`${what} lacks the header ${name}`)
  const content = described.content?.['application/json']
  if (!content || method === 'HEAD') return bytes.length === 0 ? found : [...found, `${what} has a body`]
  const body: unknown = JSON.parse(decoded(bytes, headers['content-encoding']).toString())
  const validator = validatorOf(content.schema)
  if (!validator(body)) found.push(`${what}: ${ajv.errorsText(validator.errors?.slice(0, 4))}`)
  const { code } = body as { code?: string }
  if (status >= 400 && !(String(code) in (content.examples ?? {})))
    found.push(`${what} has the code ${code}, which is not documented for it`)
  return found
}

/** @throws Error when a response is not as documented */
export const assertConforming = (received: Received): void => {
  const found = deviations(received)
  if (found.length > 0) throw new Error(`the response is not that of docs/openapi.json: ${found.join('; ')}`)
}
