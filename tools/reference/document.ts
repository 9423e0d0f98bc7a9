// The API as an OpenAPI 3.1 document: parameters and bodies from their zod schemas, headers, every error, and real answers as
// examples. `npm run openapi` writes it to docs/openapi.json, which the gateway serves; the gateway itself never makes it.

import type { Parameters } from 'abohawa/api/parameters.ts'
import type { Bounds } from 'abohawa/catalogue/location-schema.ts'
import { type AnswerName, apiPrefix, sampleOrigin } from 'abohawa/common/endpoints.ts'
import { licence, serviceName } from 'abohawa/protocol/terms.ts'
import { type ProblemStatus, problemStatuses } from 'abohawa/telemetry/label-values.ts'
import { errors } from './error-meanings.ts'
import {
  type HeaderName,
  headerObject,
  headers,
  headersOfBodies,
  headersOfErrors,
  isAlwaysThere,
} from './headers.ts'
import { componentsOf, jsonSchemaOf } from './json-schema.ts'
import { type Operation, operationsFor, parameterMeanings } from './operations.ts'
import { samplesOf } from './samples.ts'
import { bodies } from './schemas.ts'
import { described, named, summed, type Text } from './texts.ts'

/** Real answers. */
type Examples = {
  /** Bodies of 200, by endpoint. */
  readonly bodies: Readonly<Record<string, unknown>>
  /** Bodies of errors, by code. */
  readonly errors: Readonly<Record<string, unknown>>
}

// The version of the API as consumers see it. It moves apart from the product's: docs/api.md says with what.
const version = '1.5.0'

export type DocumentParts = {
  readonly bounds: Bounds
  /** The name of the bounds. */
  readonly area: string
  readonly examples: Examples
}

type Json = Record<string, unknown>

const parametersOf = ({ name: of, parameters, example }: Operation): Json[] => {
  const those = (where: 'path' | 'query', given: Parameters, values: Readonly<Record<string, string>>) =>
    Object.entries(given).map(([name, { schema }]) => {
      const meaning = parameterMeanings[`${of}.${name}`] ?? parameterMeanings[name]
      if (!meaning) throw new Error(`the parameter ${name} has no meaning`)
      const isRequired = where === 'path' || !schema.safeParse(undefined).success
      const shown = values[name]
      const shape = jsonSchemaOf(schema)
      return {
        name,
        in: where,
        ...described(...meaning),
        required: isRequired,
        ...(shape.type === 'array' ? { style: 'form', explode: false } : {}),
        schema: shape,
        ...(shown === undefined ? {} : { example: exampleOf(shape, shown) }),
      }
    })
  return [
    ...those('path', parameters.path, example.path),
    ...those('query', parameters.query, example.query),
    // What a key reads of itself is kept by nobody.
    ...requestHeaders.filter(header => of !== 'key' || header.name !== 'if-none-match'),
  ]
}

const exampleOf = ({ type, enum: choices }: Json, shown: string): unknown => {
  if (type === 'array') return shown.split(',')
  return type === 'string' || choices ? shown : Number(shown)
}

// The key is a security scheme, and codings are the client library's.
const requestHeaders: readonly Json[] = [
  {
    name: 'if-none-match',
    in: 'header',
    ...described(
      'The `etag` of a body that you have; where it still holds, the answer is 304 without a body.',
      'আপনার কাছে থাকা বডির `etag`; তা এখনও ঠিক থাকলে উত্তর বডি ছাড়া 304।',
    ),
    required: false,
    schema: { type: 'string' },
  },
  {
    name: 'x-request-id',
    in: 'header',
    ...described(
      'Your own id of the request, which the answer and the log of the operator repeat.',
      'অনুরোধের জন্য আপনার নিজের আইডি, যা উত্তর ও পরিচালকের লগে থাকে।',
    ),
    required: false,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._:/+=@-]{1,128}$' },
  },
  {
    name: 'x-test-error',
    in: 'header',
    ...described(
      'With a test key alone: the `code` of the error that the answer is to be. Other keys ignore it.',
      'কেবল পরীক্ষার কী-র সঙ্গে: যে ত্রুটি উত্তর হবে তার `code`। অন্য কী-তে উপেক্ষিত।',
    ),
    required: false,
    schema: { type: 'string' },
  },
]

const headerRefs = (names: readonly HeaderName[], of?: AnswerName): Json =>
  Object.fromEntries(
    names.map(name => [
      name,
      { $ref: `#/components/headers/${isAlwaysThere(name, of) ? name : `${name}-optional`}` },
    ]),
  )

const errorMeanings: Readonly<Record<ProblemStatus, Text>> = {
  400: ['A parameter, the URL or the request itself is malformed.', 'প্যারামিটার, URL বা অনুরোধ নিজেই ত্রুটিপূর্ণ।'],
  401: ['There is no valid key. Does not count.', 'বৈধ কী নেই। গণনা হয় না।'],
  403: [
    "The key is bound to other origins, addresses or endpoints. Or it is the preflight of a web page whose origin the operator does not list: a browser's OPTIONS before the request itself. Does not count.",
    'কী-টি অন্য উৎস, ঠিকানা বা এন্ডপয়েন্টে সীমিত, বা যে ওয়েব পাতার উৎস পরিচালকের তালিকায় নেই তার প্রাক-অনুরোধ: মূল অনুরোধের আগে ব্রাউজারের OPTIONS; গণনা হয় না।',
  ],
  404: ['There is no such path, or no such published place.', 'এমন পথ বা প্রকাশিত স্থান নেই।'],
  405: ['Another method than GET and HEAD.', 'GET ও HEAD ছাড়া অন্য পদ্ধতি।'],
  429: [
    "The day's quota is used up or does not suffice, or the key sends faster than its limit by the second or minute. Does not count.",
    'দিনের কোটা শেষ বা যথেষ্ট নয়, বা কী-টি তার সেকেন্ড বা মিনিটের সীমার চেয়ে দ্রুত পাঠাচ্ছে। গণনা হয় না।',
  ],
  500: [
    'No weather can be given, or the key could not be checked. Wait for retry-after.',
    'আবহাওয়া দেওয়া যাচ্ছে না, বা কী যাচাই করা যায়নি। retry-after পর্যন্ত অপেক্ষা করুন।',
  ],
}

const responseNames = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  429: 'QuotaExhausted',
  500: 'ServerError',
} as const satisfies Record<ProblemStatus, string>

const errorResponse = (status: ProblemStatus, examples: Examples): Json => ({
  ...described(...errorMeanings[status]),
  headers: headerRefs(headersOfErrors[status]),
  content: {
    'application/json': {
      schema: { $ref: `#/components/schemas/${status === 429 ? 'QuotaExhausted' : 'Error'}` },
      examples: Object.fromEntries(
        Object.entries(errors)
          // No endpoint answers with what is the reference's own.
          .filter(([code, error]) => error.status === status && code !== 'reference_busy')
          .map(([code, { meaning, counts }]) => {
            const value = examples.errors[code]
            if (value === undefined) throw new Error(`the error ${code} has no example`)
            return [code, { ...summed(...meaning), 'x-counts': counts, value }]
          }),
      ),
    },
  },
})

const notModified = (given: readonly HeaderName[], name: AnswerName): Json => ({
  ...described(
    'The body is the one that if-none-match names. Counts like a 200 unless the operator charges less.',
    'বডি if-none-match-এর বডিই। পরিচালক কম না ধরলে 200-এর মতোই গণনা হয়।',
  ),
  headers: headerRefs(
    given.filter(header => header !== 'content-encoding'),
    name,
  ),
})

const operationOf = (operation: Operation, examples: Examples): Json => {
  const { name, id, tag, summary, description } = operation
  const given = headersOfBodies[name]
  return {
    operationId: id,
    tags: [tag],
    ...summed(...summary),
    ...described(...description),
    parameters: parametersOf(operation),
    responses: {
      200: {
        ...described('The body that the endpoint has.', 'এন্ডপয়েন্টের বডি।'),
        headers: headerRefs(given, name),
        content: {
          'application/json': {
            schema: { $ref: `#/components/schemas/${named.get(bodies[name])?.id}` },
            example: examples.bodies[name],
          },
        },
      },
      ...(name !== 'key' && { 304: notModified(given, name) }),
      ...Object.fromEntries(
        problemStatuses.map(status => [status, { $ref: `#/components/responses/${responseNames[status]}` }]),
      ),
    },
    'x-codeSamples': samplesOf(operation),
  }
}

/** The document, in the order in which it is read. */
export const openApiDocument = ({ bounds, area, examples }: DocumentParts): Json => {
  const operations = operationsFor(bounds, area)
  const used = [...new Set([...Object.values(headersOfErrors), ...Object.values(headersOfBodies)].flat())]
  return {
    openapi: '3.1.1',
    info: {
      title: 'Abohawa API',
      version,
      ...summed('Weather for the places of Bangladesh', 'বাংলাদেশের স্থানগুলোর আবহাওয়া'),
      ...described(
        `Seven read-only endpoints. Every request needs a key in the header \`x-api-key\` and counts against the key's daily quota, which resets at local midnight; 401, 403 and 429 do not count. HEAD is GET without a body, and counts. A key may ask about itself, which does not count. Checks are made in this order: HTTPS, key, limits by the second and minute, what the key is bound to, quota, method, path and parameters, place, weather. Weather comes from ${serviceName} under ${licence.name}; name it where you show it.`,
        `সাতটি এন্ডপয়েন্ট, শুধু পড়ার জন্য। প্রতিটি অনুরোধে \`x-api-key\` হেডারে কী লাগে এবং তা কী-র দৈনিক কোটায় গণনা হয়, যা স্থানীয় মধ্যরাতে নতুন হয়; 401, 403 ও 429 গণনা হয় না। HEAD হলো বডি ছাড়া GET, এবং গণনা হয়। কী নিজের সম্বন্ধে জানতে পারে, যা গণনা হয় না। যাচাইয়ের ক্রম: HTTPS, কী, সেকেন্ড ও মিনিটের সীমা, কী যাতে সীমিত, কোটা, পদ্ধতি, পথ ও প্যারামিটার, স্থান, আবহাওয়া। আবহাওয়া ${serviceName} থেকে, ${licence.name} লাইসেন্সে; দেখালে তার নাম দিন।`,
      ),
      license: licence,
    },
    // Absolute, because generated clients join it with a path as text.
    servers: [{ url: sampleOrigin, ...described('This gateway.', 'এই গেটওয়ে।') }],
    security: [{ key: [] }],
    tags: [
      { name: 'weather', ...described('Weather', 'আবহাওয়া') },
      { name: 'places', ...described('Places', 'স্থান') },
      { name: 'keys', ...described('Keys', 'কী') },
    ],
    paths: Object.fromEntries(
      operations.map(operation => [apiPrefix + operation.path, { get: operationOf(operation, examples) }]),
    ),
    components: {
      securitySchemes: {
        key: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          ...described(
            'Begins with svc_live_; the operator issues it and shows it once. A key that begins with svc_test_ is for test suites: its weather is made up and never changes, and x-test-error has it answered with any error.',
            'svc_live_ দিয়ে শুরু; পরিচালক দেন এবং একবারই দেখান। svc_test_ দিয়ে শুরু কী পরীক্ষার জন্য: তার আবহাওয়া বানানো ও অপরিবর্তনীয়, আর x-test-error দিলে যেকোনো ত্রুটি উত্তর হয়।',
          ),
        },
      },
      headers: Object.fromEntries(
        used.flatMap(name => {
          const everywhere = isAlwaysThere(name)
          const kinds = new Set([
            everywhere,
            ...operations.map(of => everywhere && isAlwaysThere(name, of.name)),
          ])
          return [...kinds].map(isThere => [
            isThere ? name : `${name}-optional`,
            headerObject(headers[name], isThere),
          ])
        }),
      ),
      responses: Object.fromEntries(
        problemStatuses.map(status => [responseNames[status], errorResponse(status, examples)]),
      ),
      schemas: componentsOf(named),
    },
  }
}
