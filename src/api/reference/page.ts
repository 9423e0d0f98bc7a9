// The reference as an HTML page in one language, made of the OpenAPI document: all of it can be read without a script. The
// forms that send a request are the work of page/reference.js. Longer than 300 lines, because the page has many parts.

import { markup } from '../../common/page/html.ts'
import type { Language } from '../../common/page/words.ts'
import { type Say, sayIn } from './page-texts.ts'
import { type Sample, sampleOrigin } from './samples.ts'

type Texts = {
  readonly summary?: string
  readonly 'x-summary-bn'?: string
  readonly description?: string
  readonly 'x-description-bn'?: string
}

type Schema = Texts & {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly const?: string | number | boolean
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly default?: string | number
  readonly 'x-unit'?: string
}

type Parameter = Texts & {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: Schema
  readonly example?: string | number
}

type Content = {
  readonly 'application/json': {
    readonly schema: Schema
    readonly example?: unknown
    readonly examples?: Readonly<
      Record<string, Texts & { readonly 'x-counts': boolean; readonly value: { readonly error: string } }>
    >
  }
}

type Operation = Texts & {
  readonly operationId: string
  readonly parameters: readonly Parameter[]
  readonly responses: Readonly<Record<string, { readonly content: Content }>>
  readonly 'x-codeSamples': readonly Sample[]
}

/** The parts of the OpenAPI document that the page shows. */
export type ReferenceDocument = {
  readonly info: Texts & { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly headers: Readonly<
      Record<string, Texts & { readonly required?: boolean; readonly example: string | number }>
    >
    readonly responses: Readonly<
      Record<string, { readonly headers: Readonly<Record<string, object>>; readonly content: Content }>
    >
  }
}

const escaped = (text: unknown): string => markup(String(text))
/** Text in which `words` between back quotes are code. */
const prose = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, (_, words) => code(words))
const code = (escapedText: string): string => `<code lang="en">${escapedText}</code>`

const table = (label: string, heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<div class="scroll" tabindex="0" role="group" aria-label="${escaped(label)}"><table><thead><tr>${heads
    .map(head => `<th scope="col">${escaped(head)}</th>`)
    .join('')}</tr></thead><tbody>${rows
    .map(
      ([first, ...cells]) =>
        `<tr><th scope="row">${first}</th>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`,
    )
    .join('')}</tbody></table></div>`

const block = (label: string, text: string, attributes = ''): string =>
  `<pre${attributes} lang="en" tabindex="0" role="group" aria-label="${escaped(label)}"><code>${escaped(text)}</code></pre>`

const details = (summary: string, content: string, attributes = ''): string =>
  `<details${attributes}><summary>${summary}</summary>${content}</details>`

/** JSON whose lists of plain values have a line each. */
const pretty = (value: unknown): string =>
  JSON.stringify(value, null, 2).replaceAll(
    /\[\s+([^[\]{}]*?)\s+\]/g,
    (_, inner) => `[${inner.replaceAll(/\s*\n\s*/g, ' ')}]`,
  )

const refName = ({ $ref = '' }: Schema): string => $ref.split('/').at(-1) ?? ''

/** @param document as docs/openapi.json has it */
export const referencePage = (document: ReferenceDocument, language: Language): string => {
  const say = sayIn(language)
  const meaningOf = (texts: Texts): string =>
    prose((language === 'bn' ? texts['x-description-bn'] : texts.description) ?? '')
  const summaryOf = (texts: Texts): string =>
    escaped((language === 'bn' ? texts['x-summary-bn'] : texts.summary) ?? '')
  const operations = Object.entries(document.paths).map(([path, { get }]) => ({ path, ...get }))
  const { schemas, headers, responses } = document.components

  const isEverywhere = (header: string) =>
    headers[header]?.required && Object.values(responses).every(response => header in response.headers)

  const parts: readonly [string, string, string][] = [
    ['start', say('start'), startPart(document, say, meaningOf)],
    [
      'endpoints',
      say('endpoints'),
      operations.map(operation => endpointPart(operation, say, meaningOf, summaryOf)).join(''),
    ],
    [
      'bodies',
      say('bodies'),
      Object.entries(schemas)
        .map(
          ([name, schema]) =>
            `<section class="body" id="body-${name}"><h3>${code(name)}</h3><p>${meaningOf(schema)}</p>${fieldTable(name, schema, say, meaningOf)}</section>`,
        )
        .join(''),
    ],
    [
      'headers',
      say('headers'),
      table(
        say('headers'),
        [say('name'), say('meaning')],
        Object.entries(headers).map(([name, header]) => [
          code(name.replace(/-optional$/, '')),
          `${meaningOf(header)}${isEverywhere(name) ? ` <small>(${say('always')})</small>` : ''} <br>${code(escaped(header.example))}`,
        ]),
      ),
    ],
    ['errors', say('errors'), errorPart(operations[0], responses, say, meaningOf, summaryOf)],
  ]
  const other = language === 'en' ? 'bn' : 'en'
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<title>${escaped(say('title'))}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="docs/reference.css">
<script type="module" src="docs/reference.js"></script>
</head>
<body data-sending="${escaped(say('sending'))}" data-not-sent="${escaped(say('notSent', '{0}'))}" data-status="${escaped(say('status', '{0}', '{1}'))}" data-origin="${sampleOrigin}">
<a class="skip" href="#content">${escaped(say('skip'))}</a>
<header class="bar">
<img src="docs/icon.svg" alt="" width="34" height="34">
<h1>${escaped(say('title'))} <small>${escaped(say('version', document.info.version))}</small></h1>
<p class="links"><a href="api/v1/openapi.json">${escaped(say('document'))}</a> <a href="?lang=${other}" hreflang="${other}" lang="${other}">${escaped(say('otherLanguage'))}</a></p>
</header>
<nav aria-label="${escaped(say('contents'))}"><ul>${parts
    .map(
      ([id, title]) =>
        `<li><a href="#${id}">${escaped(title)}</a>${
          id === 'endpoints'
            ? `<ul>${operations.map(operation => `<li><a href="#${operation.operationId}">${summaryOf(operation)}</a></li>`).join('')}</ul>`
            : ''
        }</li>`,
    )
    .join('')}</ul></nav>
<main id="content" tabindex="-1">
${parts.map(([id, title, content]) => `<section id="${id}"><h2>${escaped(title)}</h2>${content}</section>`).join('\n')}
</main>
</body>
</html>
`
}

type MeaningOf = (texts: Texts) => string

const startPart = ({ info }: ReferenceDocument, say: Say, meaningOf: MeaningOf): string =>
  `<p>${meaningOf(info)}</p><p>${prose(say('retry'))}</p><p>${escaped(say('encoding'))}</p>
<div class="key"><label for="key">${escaped(say('key'))}</label>
<input id="key" type="password" autocomplete="off" spellcheck="false" maxlength="200" placeholder="svc_live_…" aria-describedby="key-hint">
<p id="key-hint" class="note">${escaped(say('keyHint'))}</p>
<noscript><p class="note">${escaped(say('noScript'))}</p></noscript></div>`

/** The values that a schema allows. */
const typeText = (schema: Schema, say: Say): string => {
  if (schema.$ref) return `<a href="#body-${refName(schema)}">${code(refName(schema))}</a>`
  if (schema.const !== undefined) return code(escaped(JSON.stringify(schema.const)))
  if (schema.enum) return schema.enum.map(value => code(escaped(value))).join(', ')
  if (schema.type === 'array') return say('listOf', typeText(schema.items ?? {}, say))
  const types = [schema.type ?? 'object'].flat().map(type => say(type as 'string'))
  const [first = '', second] = types
  const type = second === undefined ? first : say('or', first, second)
  const range =
    schema.minimum !== undefined && schema.maximum !== undefined
      ? `, ${say('from', schema.minimum, schema.maximum)}`
      : ''
  return `${escaped(type)}${escaped(range)}${schema.maxLength === undefined ? '' : `, ${escaped(say('atMost', schema.maxLength))}`}`
}

const fieldTable = (
  name: string,
  { properties = {}, required = [] }: Schema,
  say: Say,
  meaningOf: MeaningOf,
): string => {
  const hasUnits = Object.values(properties).some(schema => schema['x-unit'])
  const hasMeanings = Object.values(properties).some(schema => schema.description)
  return table(
    name,
    [say('name'), say('type'), ...(hasUnits ? [say('unit')] : []), ...(hasMeanings ? [say('meaning')] : [])],
    Object.entries(properties).map(([field, schema]) => [
      code(field),
      `${typeText(schema, say)}${required.includes(field) ? '' : ` <small>(${escaped(say('optional'))})</small>`}`,
      ...(hasUnits ? [schema['x-unit'] ? code(escaped(schema['x-unit'])) : ''] : []),
      ...(hasMeanings ? [meaningOf(schema)] : []),
    ]),
  )
}

const endpointPart = (
  {
    path,
    operationId,
    parameters,
    responses,
    'x-codeSamples': samples,
    ...texts
  }: Operation & { path: string },
  say: Say,
  meaningOf: MeaningOf,
  summaryOf: MeaningOf,
): string => {
  const content = responses[200]?.content['application/json']
  const rows = parameters.map(parameter => [
    code(parameter.name),
    say(parameter.in),
    `${typeText(parameter.schema, say)}${parameter.required ? ` <small>(${escaped(say('required'))})</small>` : ''}${
      parameter.schema.default === undefined || parameter.schema.default === ''
        ? ''
        : `, ${say('default', code(escaped(parameter.schema.default)))}`
    }`,
    meaningOf(parameter),
  ])
  return `<article id="${operationId}" aria-labelledby="${operationId}-title">
<h3 id="${operationId}-title">${summaryOf(texts)}</h3>
<p class="route">${code(`<b>GET</b> ${escaped(path)}`)}</p>
<p>${meaningOf(texts)}</p>
<h4>${escaped(say('request'))}</h4>
${table(say('request'), [say('name'), say('place'), say('type'), say('meaning')], rows)}
<h4>${escaped(say('answer'))}</h4>
<p>${typeText(content?.schema ?? {}, say)}</p>
${details(escaped(say('exampleBody')), block(say('exampleBody'), pretty(content?.example)))}
<h4>${escaped(say('programs'))}</h4>
<p class="note">${prose(say('programsKey'))}</p>
${samples
  .map(({ label, source }, at) =>
    details(
      escaped(label),
      block(say('programIn', label), source, ' class="program"'),
      ` name="programs-${operationId}"${at === 0 ? ' open' : ''}`,
    ),
  )
  .join('')}
<h4 id="${operationId}-try">${escaped(say('try'))}</h4>
<form class="try" data-path="${escaped(path)}" aria-labelledby="${operationId}-title ${operationId}-try" autocomplete="off">
<div class="field"><label for="${operationId}-key">${escaped(say('keyHere'))}</label>
<input id="${operationId}-key" type="password" autocomplete="off" spellcheck="false" maxlength="200" placeholder="svc_live_…" aria-describedby="key-hint"></div>
${parameters
  .filter(({ in: where }) => where !== 'header')
  .map(parameter => inputOf(operationId, parameter))
  .join('\n')}
<button type="submit" disabled>${escaped(say('send'))}</button>
<div class="result" hidden>
<p class="url"><code lang="en"></code></p>
<p class="status" role="status"></p>
<pre class="answer" lang="en" tabindex="0" role="group" aria-label="${escaped(say('answerBody'))}"></pre>
<pre class="headers" lang="en" tabindex="0" role="group" aria-label="${escaped(say('answerHeaders'))}"></pre>
</div>
</form>
</article>`
}

const inputOf = (operationId: string, { name, in: where, required, schema, example }: Parameter): string => {
  const id = `${operationId}-${name}`
  const value = escaped(example ?? '')
  const field = schema.enum
    ? `<select id="${id}" name="${name}" data-in="${where}">${required ? '' : '<option value=""></option>'}${schema.enum
        .map(choice => `<option${choice === example ? ' selected' : ''}>${escaped(choice)}</option>`)
        .join('')}</select>`
    : `<input id="${id}" name="${name}" data-in="${where}" value="${value}"${required ? ' required' : ''} spellcheck="false">`
  return `<div class="field"><label for="${id}">${code(escaped(name))}</label>${field}</div>`
}

const errorPart = (
  operation: Operation | undefined,
  responses: ReferenceDocument['components']['responses'],
  say: Say,
  meaningOf: MeaningOf,
  summaryOf: MeaningOf,
): string => {
  const statuses = Object.entries(operation?.responses ?? {}).filter(([status]) => Number(status) >= 400)
  const rows = statuses.flatMap(([status, response]) => {
    const { content } = responses[refName(response as Schema)] ?? {}
    return Object.entries(content?.['application/json'].examples ?? {}).map(([name, example]) => [
      code(name),
      status,
      say(example['x-counts'] ? 'yes' : 'no'),
      summaryOf(example),
      `<code lang="en" class="sentence">${escaped(JSON.stringify(example.value))}</code>`,
    ])
  })
  const means = statuses.map(([status, response]) => {
    const described = responses[refName(response as Schema)] as Texts | undefined
    return `<li><b>${status}</b> ${meaningOf(described ?? {})}</li>`
  })
  return `<p>${prose(say('errorsIntro'))}</p><ul class="statuses">${means.join('')}</ul>${table(
    say('errors'),
    [say('code'), say('statusWord'), say('counts'), say('meaning'), say('exampleBody')],
    rows,
  )}`
}
