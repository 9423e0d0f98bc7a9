// Scripts that complete a command line in bash, zsh and fish. Each finds the command that is being typed by the words before,
// then offers its commands, options and words. Pure text; completion.ts says what there is.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the shells

/** The values of an option or an argument: names of files, or fixed words; one that ends with a slash goes on. */
export type CompletedValues = 'files' | { readonly words: readonly string[] }

export type CompletedCommand = {
  /** The words of the command after the program's name; empty for the program. */
  readonly path: readonly string[]
  readonly commands: readonly { readonly name: string; readonly summary: string }[]
  readonly options: readonly {
    readonly flags: readonly string[]
    readonly summary: string
    /** Undefined for an option without a value. */
    readonly values: CompletedValues | undefined
  }[]
  readonly argument: CompletedValues | undefined
}

export const shells = ['bash', 'zsh', 'fish'] as const

export const scriptOf = (shell: (typeof shells)[number], commands: readonly CompletedCommand[]): string =>
  `${writers[shell](commands).join('\n')}\n`

type Writer = (commands: readonly CompletedCommand[]) => string[]

// The path of a command in all scripts: each word with a blank before it, so that none is the end of another.
const pathText = (path: readonly string[]): string => path.map(word => ` ${word}`).join('')
const single = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const wordsOf = (values: CompletedValues | undefined): readonly string[] =>
  values === undefined || values === 'files' ? [] : values.words

/** Cases of a `case` of bash and zsh: the words by which a path goes on. */
const knownPaths = (commands: readonly CompletedCommand[]): string =>
  commands
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => single(pathText(path)))
    .join(' | ')

/** Options with a value: the patterns `PATH FLAG` and what completes the value. */
const valueCases = (
  commands: readonly CompletedCommand[],
  write: (values: CompletedValues) => string,
): string[] =>
  commands.flatMap(({ path, options }) =>
    options.flatMap(({ flags, values }) =>
      values === undefined
        ? []
        : `    (${flags.map(flag => single(`${pathText(path)} ${flag}`)).join(' | ')}) ${write(values)}; return ;;`,
    ),
  )

const bash: Writer = commands => [
  '# Completes abohawa in bash.',
  '_abohawa() {',
  '  local word="${COMP_WORDS[COMP_CWORD]}" at= i',
  '  for ((i = 1; i < COMP_CWORD; i++)); do',
  '    case "$at ${COMP_WORDS[i]}" in',
  `      (${knownPaths(commands)}) at="$at \${COMP_WORDS[i]}" ;;`,
  '    esac',
  '  done',
  '  COMPREPLY=()',
  '  case "$at ${COMP_WORDS[COMP_CWORD - 1]}" in',
  ...valueCases(commands, values =>
    values === 'files'
      ? 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word")'
      : `mapfile -t COMPREPLY < <(compgen -W ${single(values.words.join(' '))} -- "$word")`,
  ),
  '  esac',
  '  case "$at" in',
  ...commands.map(({ path, commands: below, options, argument }) => {
    const words = [
      ...below.map(({ name }) => name),
      ...wordsOf(argument),
      ...options.flatMap(({ flags }) => flags),
    ]
    const files =
      argument === 'files'
        ? '; compopt -o filenames 2>/dev/null; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")'
        : ''
    return `    (${single(pathText(path))}) mapfile -t COMPREPLY < <(compgen -W ${single(words.join(' '))} -- "$word")${files} ;;`
  }),
  '  esac',
  // Only a completion that runs may set its options.
  '  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null',
  '  return 0',
  '}',
  'complete -F _abohawa abohawa',
]

// Of `_describe`, a colon ends the word; what follows explains it.
const described = (word: string, summary: string): string =>
  single(`${word.replaceAll(':', '\\:')}:${summary.replaceAll('\n', ' ')}`)

const zsh: Writer = commands => [
  '#compdef abohawa',
  '_abohawa() {',
  '  local at= i',
  '  local -a found further',
  '  for ((i = 2; i < CURRENT; i++)); do',
  '    case "$at ${words[i]}" in',
  `      (${knownPaths(commands)}) at="$at \${words[i]}" ;;`,
  '    esac',
  '  done',
  '  case "$at ${words[CURRENT-1]}" in',
  ...valueCases(commands, values =>
    values === 'files'
      ? '_files'
      : values.words.length > 0
        ? `compadd -- ${values.words.join(' ')}`
        : '_default',
  ),
  '  esac',
  '  case "$at" in',
  ...commands.map(({ path, commands: below, options, argument }) => {
    const found = [
      ...below.map(({ name, summary }) => described(name, summary)),
      ...options.flatMap(({ flags, summary }) => flags.map(flag => described(flag, summary))),
    ]
    const words = wordsOf(argument)
    const [whole, open] = [
      words.filter(word => !word.endsWith('/')),
      words.filter(word => word.endsWith('/')),
    ]
    const more = [
      ...(argument === 'files' ? ['_files'] : []),
      ...(whole.length > 0 ? [`compadd -- ${whole.join(' ')}`] : []),
      ...(open.length > 0 ? [`compadd -S '' -- ${open.join(' ')}`] : []),
    ].map(line => `${line}; `)
    return `    (${single(pathText(path))}) ${more.join('')}found=(${found.join(' ')}) ;;`
  }),
  '  esac',
  "  _describe -V 'abohawa' found",
  '}',
  // Read from a folder of functions it is one; read by `source` it registers itself.
  'if [[ "${funcstack[1]}" == _abohawa ]]; then _abohawa "$@"; else compdef _abohawa abohawa; fi',
]

const fish: Writer = commands => [
  '# Completes abohawa in fish.',
  'function __abohawa_at',
  '  set -l at ""',
  '  for word in (commandline -opc)[2..-1]',
  '    switch "$at $word"',
  `      case ${commands
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => quotedForFish(pathText(path)))
    .join(' ')}`,
  '        set at "$at $word"',
  '    end',
  '  end',
  '  test "$at" = "$argv[1]"',
  'end',
  'complete -c abohawa -f',
  ...commands.flatMap(({ path, commands: below, options, argument }) => {
    const head = `complete -c abohawa -n ${quotedForFish(`__abohawa_at "${pathText(path)}"`)}`
    return [
      ...below.map(({ name, summary }) => `${head} -a ${name} -d ${quotedForFish(summary)}`),
      ...(argument === 'files' ? [`${head} -F`] : []),
      ...wordsOf(argument).map(word => `${head} -a ${quotedForFish(word)}`),
      ...options.map(({ flags, summary, values }) => {
        const names = flags.map(flag =>
          flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
        )
        const value =
          values === undefined
            ? ''
            : values === 'files'
              ? ' -r -F'
              : ` -x${values.words.length > 0 ? ` -a ${quotedForFish(values.words.join(' '))}` : ''}`
        return `${head} ${names.join(' ')}${value} -d ${quotedForFish(summary)}`
      }),
    ]
  }),
]

function quotedForFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

const writers: Readonly<Record<(typeof shells)[number], Writer>> = { bash, zsh, fish }
