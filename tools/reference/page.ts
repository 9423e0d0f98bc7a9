// The reference as an HTML page in one language, from the OpenAPI document and the table of errors. It reads without a script.
// Longer than 300 lines, because the parts of a page are read in its order.

import { anchorOf } from 'abohawa/api/problem.ts'
import { sampleOrigin } from 'abohawa/common/endpoints.ts'
import { markup } from 'abohawa/common/page/html.ts'
import type { Language } from 'abohawa/common/page/words.ts'
import { table } from '../common/html.ts'
import { errors, proxyErrors } from './error-meanings.ts'
import { type Say, sayIn, type Word } from './page-texts.ts'
import type { Sample } from './samples.ts'

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
  readonly anyOf?: readonly Schema[]
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
  /** A list is written with commas. */
  readonly example?: string | number | readonly string[]
}

type Content = {
  readonly 'application/json': {
    readonly schema: Schema
    readonly example?: unknown
    readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
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
      Record<
        string,
        Texts & { readonly headers: Readonly<Record<string, object>>; readonly content: Content }
      >
    >
  }
}

const escaped = (text: unknown): string => markup(String(text))
/** Text in which `words` between back quotes are code. */
const prose = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, (_, words) => code(words))
const code = (escapedText: string): string => `<code lang="en">${escapedText}</code>`

/** The text of a program or a body, or what a script puts there. */
const block = (label: string, text: unknown, attributes = ''): string =>
  `<pre${attributes} lang="en" tabindex="0" role="group" aria-label="${escaped(label)}">${text}</pre>`

const details = (summary: string, content: string, attributes = ''): string =>
  `<details${attributes}><summary>${escaped(summary)}</summary>${content}</details>`

const panel = (content: string): string => `<div class="panel">${content}</div>`

/** JSON whose lists of plain values have a line each. */
const pretty = (value: unknown): string =>
  JSON.stringify(value, null, 2).replaceAll(
    /\[\s+([^[\]{}]*?)\s+\]/g,
    (_, inner) => `[${inner.replaceAll(/\s*\n\s*/g, ' ')}]`,
  )

const refName = ({ $ref = '' }: Schema): string => $ref.split('/').at(-1) ?? ''

// The gateway puts `server.publicUrl` into the programs; the script then has nothing to replace.
const unreplaced = sampleOrigin.replace(':', '&#58;')

// A field for the key, which reference.js keeps the same everywhere.
const keyField = (id: string): string =>
  `<input id="${id}" type="password" autocomplete="off" spellcheck="false" maxlength="200" placeholder="svc_live_…" aria-describedby="key-hint">`

/** @param document as docs/openapi.json has it */
export const referencePage = (document: ReferenceDocument, language: Language): string => {
  const { schemas, headers, responses } = document.components
  const operations = Object.entries(document.paths).map(([path, { get }]) => ({ path, ...get }))
  const plain = sayIn(language)
  const say: Say = (...words) => escaped(plain(...words))
  const meaningOf = (texts: Texts): string =>
    prose((language === 'bn' ? texts['x-description-bn'] : texts.description) ?? '')
  const summaryOf = (texts: Texts): string =>
    escaped((language === 'bn' ? texts['x-summary-bn'] : texts.summary) ?? '')
  const note = (word: Word): string => ` <small>(${say(word)})</small>`
  const tableOf = (label: string, heads: readonly Word[], rows: readonly (readonly string[])[]) =>
    table(
      label,
      heads.map(head => ({ head: plain(head) })),
      rows,
    )

  /** The values that a schema allows. */
  const typeOf = (schema: Schema): string => {
    if (schema.$ref) return `<a href="#body-${refName(schema)}">${code(refName(schema))}</a>`
    if (schema.const !== undefined) return code(escaped(JSON.stringify(schema.const)))
    if (schema.enum) return schema.enum.map(value => code(escaped(value))).join(', ')
    if (schema.type === 'array') return plain('listOf', typeOf(schema.items ?? {}))
    if (schema.anyOf) return schema.anyOf.map(typeOf).join(', ')
    const [first = '', second] = [schema.type ?? 'object'].flat().map(type => plain(type as 'string'))
    const { minimum, maximum, maxLength } = schema
    return [
      second === undefined ? escaped(first) : say('or', first, second),
      ...(minimum !== undefined && maximum !== undefined ? [say('from', minimum, maximum)] : []),
      ...(maxLength === undefined ? [] : [say('atMost', maxLength)]),
    ].join(', ')
  }

  const startPart = (): string =>
    `<p>${meaningOf(document.info)}</p><p>${prose(plain('retry'))}</p><p>${say('encoding')}</p>
<div class="panel"><label for="key">${say('key')}</label>
${keyField('key')}
<p id="key-hint" class="note">${say('keyHint')}</p>
<noscript><p class="note">${say('noScript')}</p></noscript></div>`

  const endpointPart = (operation: (typeof operations)[number]): string => {
    const { path, operationId: id, parameters, 'x-codeSamples': samples } = operation
    const content = operation.responses[200]?.content['application/json']
    const rows = parameters.map(parameter => {
      const { name, in: where, required, schema } = parameter
      const usual = schema.default ?? ''
      const byDefault = usual === '' ? '' : `, ${plain('default', code(escaped(usual)))}`
      return [
        code(name),
        plain(where),
        `${typeOf(schema)}${required ? note('required') : ''}${byDefault}`,
        meaningOf(parameter),
      ]
    })
    const programs = samples.map(({ label, source }, at) =>
      details(
        label,
        block(plain('programIn', label), `<code>${escaped(source)}</code>`, ' class="program"'),
        ` name="programs-${id}"${at === 0 ? ' open' : ''}`,
      ),
    )
    return `<article class="panel" id="${id}" aria-labelledby="${id}-title">
<h3 id="${id}-title">${summaryOf(operation)}</h3>
<p>${code(`<b>GET</b> ${escaped(path)}`)}</p>
<p>${meaningOf(operation)}</p>
<h4>${say('request')}</h4>
${tableOf(plain('request'), ['name', 'place', 'type', 'meaning'], rows)}
<h4>${say('answer')}</h4>
<p>${typeOf(content?.schema ?? {})}</p>
${details(plain('exampleBody'), block(plain('exampleBody'), `<code>${escaped(pretty(content?.example))}</code>`))}
<h4>${say('programs')}</h4>
<p class="note">${prose(plain('programsKey'))}</p>
${programs.join('')}
<h4 id="${id}-try">${say('try')}</h4>
<form class="try" data-path="${escaped(path)}" aria-labelledby="${id}-title ${id}-try" autocomplete="off">
<div><label for="${id}-key">${say('keyHere')}</label>
${keyField(`${id}-key`)}</div>
${parameters
  .filter(({ in: where }) => where !== 'header')
  .map(parameter => inputOf(id, parameter))
  .join('\n')}
<button type="submit" disabled>${say('send')}</button>
<div class="result" hidden>
<p class="url"><code lang="en"></code></p>
<p class="status" role="status"></p>
${block(plain('answerBody'), '', ' class="answer"')}
${block(plain('answerHeaders'), '', ' class="headers"')}
</div>
</form>
</article>`
  }

  const bodyPart = ([name, schema]: [string, Schema]): string => {
    const { properties = {}, required = [], ...texts } = schema
    const fields = Object.entries(properties)
    const hasUnits = fields.some(([, schema]) => schema['x-unit'])
    const hasMeanings = fields.some(([, schema]) => schema.description)
    const rows = fields.map(([field, schema]) => [
      code(field),
      `${typeOf(schema)}${required.includes(field) ? '' : note('optional')}`,
      ...(hasUnits ? [schema['x-unit'] ? code(escaped(schema['x-unit'])) : ''] : []),
      ...(hasMeanings ? [meaningOf(schema)] : []),
    ])
    const heads: readonly Word[] = [
      'name',
      'type',
      ...(hasUnits ? (['unit'] as const) : []),
      ...(hasMeanings ? (['meaning'] as const) : []),
    ]
    return `<section class="panel" id="body-${name}"><h3>${code(name)}</h3><p>${meaningOf(texts)}</p>${schema.type === 'array' ? `<p>${typeOf(schema)}</p>` : tableOf(name, heads, rows)}</section>`
  }

  const headerPart = (): string => {
    const isEverywhere = (header: string) =>
      headers[header]?.required && Object.values(responses).every(response => header in response.headers)
    const rows = Object.entries(headers).map(([name, header]) => [
      code(name.replace(/-optional$/, '')),
      `${meaningOf(header)}${isEverywhere(name) ? note('always') : ''} <br>${code(escaped(header.example))}`,
    ])
    return panel(tableOf(plain('headers'), ['name', 'meaning'], rows))
  }

  const errorPart = (): string => {
    const statuses = Object.entries(operations[0]?.responses ?? {}).filter(
      ([status]) => Number(status) >= 400,
    )
    const described = statuses.map(
      ([status, response]) => [status, responses[refName(response as Schema)]] as const,
    )
    const examples = Object.fromEntries(
      described.flatMap(([, response]) =>
        Object.entries(response?.content['application/json'].examples ?? {}),
      ),
    )
    const rows = Object.entries({ ...errors, ...proxyErrors }).map(([name, { status, counts, meaning }]) => [
      `<a id="${anchorOf(name)}" href="#${anchorOf(name)}">${code(name)}</a>`,
      String(status),
      plain(counts ? 'yes' : 'no'),
      prose(meaning[language === 'en' ? 0 : 1]),
      examples[name] ? `<code lang="en">${escaped(JSON.stringify(examples[name].value))}</code>` : '',
    ])
    const means = described.map(([status, texts]) => `<li><b>${status}</b> ${meaningOf(texts ?? {})}</li>`)
    return `<p>${prose(plain('errorsIntro'))}</p><ul class="statuses">${means.join('')}</ul>${panel(
      tableOf(plain('errors'), ['code', 'statusWord', 'counts', 'meaning', 'exampleBody'], rows),
    )}`
  }

  const parts: readonly ['start' | 'endpoints' | 'bodies' | 'headers' | 'errors', string][] = [
    ['start', startPart()],
    ['endpoints', operations.map(endpointPart).join('')],
    ['bodies', Object.entries(schemas).map(bodyPart).join('')],
    ['headers', headerPart()],
    ['errors', errorPart()],
  ]
  const links = operations.map(each => `<li><a href="#${each.operationId}">${summaryOf(each)}</a></li>`)
  const other = language === 'en' ? 'bn' : 'en'
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<title>${say('title')}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="docs/reference.css">
<script type="module" src="docs/reference.js"></script>
</head>
<body data-sending="${say('sending')}" data-not-sent="${say('notSent', '{0}')}" data-status="${say('status', '{0}', '{1}')}" data-origin="${unreplaced}">
<a class="skip" href="#content">${say('skip')}</a>
<header class="bar">
<img src="docs/icon.svg" alt="" width="34" height="34">
<h1>${say('title')} <small>${say('version', document.info.version)}</small></h1>
<p class="links"><a href="api/v1/openapi.json">${say('document')}</a> <a href="?lang=${other}" hreflang="${other}" lang="${other}">${say('otherLanguage')}</a></p>
</header>
<nav aria-label="${say('contents')}"><ul>${parts
    .map(
      ([id]) =>
        `<li><a href="#${id}">${say(id)}</a>${id === 'endpoints' ? `<ul>${links.join('')}</ul>` : ''}</li>`,
    )
    .join('')}</ul></nav>
<main id="content" tabindex="-1">
${parts.map(([id, content]) => `<section id="${id}"><h2>${say(id)}</h2>${content}</section>`).join('\n')}
</main>
</body>
</html>
`
}

const inputOf = (operationId: string, { name, in: where, required, schema, example }: Parameter): string => {
  const id = `${operationId}-${name}`
  const value = escaped(String(example ?? ''))
  const listed = schema.items?.enum ?? []
  const choices = schema.enum ?? (listed.length > 1 ? [...listed, listed.join(',')] : listed)
  const field =
    choices.length > 0
      ? `<select id="${id}" name="${name}" data-in="${where}">${required ? '' : '<option value=""></option>'}${choices
          .map(choice => `<option${choice === example ? ' selected' : ''}>${escaped(choice)}</option>`)
          .join('')}</select>`
      : `<input id="${id}" name="${name}" data-in="${where}" value="${value}"${required ? ' required' : ''} spellcheck="false">`
  return `<div><label for="${id}">${code(escaped(name))}</label>${field}</div>`
}
