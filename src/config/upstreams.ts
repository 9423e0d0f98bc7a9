// The upstreams of a configuration, each as the configuration of a gateway that had only this one.

import type { Config } from './schema.ts'

/** An upstream by its name, which is the only thing that consumers see of it. */
export type UpstreamConfig = { readonly name: string; readonly config: Config }

/** The names of the upstreams, in their order. */
export const upstreamNamesIn = ({ provider: { fallbacks } }: Config): readonly string[] => [
  'primary',
  ...fallbacks.map((fallback, i) => fallback.name ?? `fallback-${i + 1}`),
]

/** The upstreams in their order. Without fallbacks the one has the configuration as it is. */
export const upstreamsIn = (config: Config): readonly [UpstreamConfig, ...UpstreamConfig[]] => {
  const { fallbacks, ...first } = config.provider
  const names = upstreamNamesIn(config)
  if (fallbacks.length === 0) return [{ name: names[0] ?? '', config }]
  const upstreamOf = (given: Partial<typeof first>, i: number): UpstreamConfig => {
    const name = names[i] ?? ''
    return { name, config: { ...config, provider: { ...first, ...given, fallbacks: [] } } }
  }
  return [
    upstreamOf({}, 0),
    ...fallbacks.map(({ name: _, apiKeyFile: __, ...fallback }, i) => upstreamOf(fallback, i + 1)),
  ]
}
