// Programs in four languages that send the example request of an endpoint: they encode the URL and respect a short retry-after.

import { apiPrefix, sampleOrigin } from 'abohawa/common/endpoints.ts'
import type { Operation } from './operations.ts'

export type Sample = {
  /** As syntax highlighters call it. */
  readonly lang: string
  readonly label: string
  readonly source: string
}

type Request = Pick<Operation, 'path' | 'example'>

const whereKeyIs = 'ABOHAWA_KEY holds the key that the operator of the gateway gave you.'

/** The path of a request, whose values each language encodes in its own way. */
const pathOf = ({ path, example }: Request, written: (value: string) => string): string =>
  path.slice(1).replaceAll(/\{(\w+)\}/g, (_, name) => written(example.path[name] ?? ''))

const queryOf = ({ example }: Request): readonly [string, string][] => Object.entries(example.query)

/** What of the answer is printed. */
const shownOf = ({ example }: Request, written: (name: string) => string): string =>
  example.show.map(name => (typeof name === 'number' ? `[${name}]` : written(name))).join('')

const curl = (request: Request): string => {
  const url = `"\${ABOHAWA_URL:-${sampleOrigin}}${apiPrefix}/${pathOf(request, encodeURIComponent)}"`
  const query = queryOf(request).map(([name, value]) => ` \\\n  --data-urlencode '${name}=${value}'`)
  return `# ${whereKeyIs}
# curl waits for retry-after, but no longer than a minute in all, and prints the sentence of an error too.
curl --silent --show-error --fail-with-body --max-time 30 --retry 2 --retry-max-time 60 \\
  --header "x-api-key: $ABOHAWA_KEY" \\
  --get ${url}${query.join('')}
`
}

const typescript = (request: Request): string => {
  const path = pathOf(request, value => `\${encodeURIComponent('${value}')}`)
  const query = queryOf(request)
  const search =
    query.length === 0
      ? ''
      : `url.search = new URLSearchParams({ ${query.map(([name, value]) => `${name}: '${value}'`).join(', ')} }).toString()\n`
  const shown = shownOf(request, name => `.${name}`)
  return `// ${whereKeyIs}
const base = process.env.ABOHAWA_URL ?? '${sampleOrigin}'
const url = new URL(\`\${base}${apiPrefix}/${path}\`)
${search}
for (let attempt = 1; ; attempt += 1) {
  const response = await fetch(url, {
    headers: { 'x-api-key': process.env.ABOHAWA_KEY ?? '' },
    signal: AbortSignal.timeout(30_000),
  })
  const body = JSON.parse(await response.text())
  if (response.ok) {
    console.log(body${shown})
    break
  }
  // A used-up quota comes back at midnight: wait a minute at most, and only where there is something to wait for.
  const seconds = Number(response.headers.get('retry-after') ?? 0)
  if (attempt === 3 || seconds === 0 || seconds > 60)
    throw new Error(\`\${response.status} \${body.code}: \${body.error}\`)
  await new Promise(resolve => setTimeout(resolve, seconds * 1000))
}
`
}

const python = (request: Request): string => {
  const path = pathOf(request, value => `{quote('${value}', safe='')}`)
  const query = queryOf(request)
  const search =
    query.length === 0
      ? ''
      : ` + "?" + urlencode({${query.map(([name, value]) => `"${name}": "${value}"`).join(', ')}})`
  const shown = shownOf(request, name => `["${name}"]`)
  const parts = ['quote', 'urlencode'].filter(name => `${path}${search}`.includes(`${name}(`))
  return `# ${whereKeyIs}
import json
import os
import time
from urllib.error import HTTPError
${parts.length === 0 ? '' : `from urllib.parse import ${parts.join(', ')}\n`}from urllib.request import Request, urlopen

base = os.environ.get("ABOHAWA_URL", "${sampleOrigin}")
url = base + ${path.includes('{') ? 'f' : ''}"${apiPrefix}/${path}"${search}
request = Request(url, headers={"x-api-key": os.environ["ABOHAWA_KEY"]})

for attempt in range(1, 4):
    try:
        with urlopen(request, timeout=30) as response:
            body = json.load(response)
        print(body${shown})
        break
    except HTTPError as error:
        body = json.load(error)
        # A used-up quota comes back at midnight: wait a minute at most, and only where there is something to wait for.
        seconds = int(error.headers.get("retry-after", 0))
        if attempt == 3 or not 0 < seconds <= 60:
            raise SystemExit(f"{error.code} {body['code']}: {body['error']}")
        time.sleep(seconds)
`
}

const go = (request: Request): string => {
  // A value at the end leaves nothing to add.
  const path = `"${apiPrefix}/${pathOf(request, value => `" + url.PathEscape("${value}") + "`)}"`.replace(
    / \+ ""$/,
    '',
  )
  const query = queryOf(request)
  const search =
    query.length === 0
      ? ''
      : `\tquery := url.Values{${query.map(([name, value]) => `"${name}": {"${value}"}`).join(', ')}}\n`
  const imports = [
    'fmt',
    'io',
    'log',
    'net/http',
    ...(`${path}${search}`.includes('url.') ? ['net/url'] : []),
    'os',
    'strconv',
    'time',
  ]
  return `// ${whereKeyIs}
package main

import (
${imports.map(name => `\t"${name}"`).join('\n')}
)

func main() {
	base := os.Getenv("ABOHAWA_URL")
	if base == "" {
		base = "${sampleOrigin}"
	}
	path := ${path}
${search}	request, err := http.NewRequest("GET", base+path${query.length === 0 ? '' : '+"?"+query.Encode()'}, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("x-api-key", os.Getenv("ABOHAWA_KEY"))
	client := http.Client{Timeout: 30 * time.Second}

	for attempt := 1; ; attempt++ {
		response, err := client.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		if response.StatusCode == http.StatusOK {
			fmt.Println(string(body))
			return
		}
		// A used-up quota comes back at midnight: wait a minute at most, and only where there is something to wait for.
		seconds, _ := strconv.Atoi(response.Header.Get("retry-after"))
		if attempt == 3 || seconds <= 0 || seconds > 60 {
			log.Fatalf("%d %s", response.StatusCode, body)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}
`
}

/** The programs of an endpoint. */
export const samplesOf = (request: Request): readonly Sample[] => [
  { lang: 'shell', label: 'curl', source: curl(request) },
  { lang: 'typescript', label: 'TypeScript', source: typescript(request) },
  { lang: 'python', label: 'Python', source: python(request) },
  { lang: 'go', label: 'Go', source: go(request) },
]
