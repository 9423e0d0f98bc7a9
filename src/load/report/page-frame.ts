// The frame of every report: one HTML file that needs nothing else, in English and Bengali, light and dark. To make a page,
// give `reportFrame` a function that writes the content in one language, from page/html.ts (tables, tiles, facts, notices, sections),
// line-chart.ts and scatter-chart.ts with the scales of scale.ts, and figuresIn for numbers in the digits of the language.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createFigures } from '../../page/figures.js'
import { escaped, type Html } from '../../page/html.ts'
import { type Language, languages, sayIn } from '../../page/words.ts'

export type Figures = ReturnType<typeof createFigures>

/** Numbers, durations and instants as text. @param timeZone of the times of day: the gateway's, `quota.timeZone` */
export const figuresIn = (language: Language, timeZone: string): Figures => createFigures(language, timeZone)

export type PageContent = {
  readonly title: string
  /** Beside the title: what the page is about. */
  readonly subtitle: string
  /** Sections, whose ids differ. */
  readonly content: Html
}

const words = {
  en: {
    otherLanguage: 'বাংলা',
    theme: 'Theme',
    system: 'System',
    light: 'Light',
    dark: 'Dark',
    skip: 'Skip to the content',
    hint: 'On a chart, arrow keys move from value to value.',
  },
  bn: {
    otherLanguage: 'English',
    theme: 'থিম',
    system: 'সিস্টেম',
    light: 'হালকা',
    dark: 'গাঢ়',
    skip: 'মূল অংশে যান',
    hint: 'চার্টে তীর-চাবি দিয়ে এক মান থেকে পরের মানে যাওয়া যায়।',
  },
}

const fileText = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The modules of the page as one script: what one exports stands before what imports it. */
const script = (): string =>
  ['../../page/preferences.js', 'page/report.js']
    .map(file =>
      fileText(file)
        .replaceAll(/^import .*?from '.*?'\n/gms, '')
        .replaceAll(/^export /gm, ''),
    )
    .join('\n')

// Addresses within the page are those of one language.
const withIds = (content: Html, language: Language): Html =>
  language === 'en' ? content : content.replaceAll(/( id| aria-labelledby)="([^"]+)"/g, `$1="$2-${language}"`)

/** The text of the file. @param write the content in one language */
export const reportFrame = (write: (language: Language) => PageContent): string => {
  const icon = fileText('../../page/icon.svg').trim()
  const style = `${fileText('../../page/theme.css')}\n${fileText('page/report.css')}`
  const behaviour = script()
  const versions = languages.map(language => {
    const say = sayIn(words, language)
    const { title, subtitle, content } = write(language)
    const themes = (['system', 'light', 'dark'] as const).map(
      theme => `<option value="${theme}">${escaped(say(theme))}</option>`,
    )
    const html = `<div class="version" lang="${language}" data-title="${escaped(title)}"${language === 'en' ? '' : ' hidden'}>
<a class="skip" href="#content${language === 'en' ? '' : `-${language}`}">${escaped(say('skip'))}</a>
<header class="bar">${icon.replace('<svg ', '<svg class="icon" width="34" height="34" aria-hidden="true" ')}
<h1>${escaped(title)}<small>${escaped(subtitle)}</small></h1>
<div class="controls" hidden><button type="button" class="language" lang="${language === 'en' ? 'bn' : 'en'}">${escaped(say('otherLanguage'))}</button><select class="theme" aria-label="${escaped(say('theme'))}">${themes.join('')}</select></div>
</header>
<main id="content" tabindex="-1">
${content}
<p class="note hint" hidden>${escaped(say('hint'))}</p>
</main>
</div>`
    return { title, html: withIds(html, language) }
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src ${hash(behaviour)}; img-src data:; base-uri 'none'; form-action 'none'">
<title>${escaped(versions[0]?.title ?? '')}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}">
<style>
${style}</style>
</head>
<body>
${versions.map(({ html }) => html).join('\n')}
<script type="module">${behaviour}</script>
</body>
</html>
`
}
