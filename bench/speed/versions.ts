// The versions of other software that takes part in a comparison.

import { readFileSync } from 'node:fs'
import { nginxVersion } from './nginx.ts'

/** nginx, and these packages. */
export const versionsOf = (packages: readonly string[]): string[] => [
  ...(nginxVersion ? [`nginx ${nginxVersion}`] : []),
  packages.map(name => `${name} ${versionOf(name) ?? 'not installed'}`).join(', '),
]

const versionOf = (name: string): string | undefined => {
  try {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
  } catch {
    return undefined
  }
}
