// Without it curl, Python, Java or Chromium could fail to read gzip that is joined from two parts.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { request } from 'undici'
import { launchBrowser, withoutBrowser } from '../support/browser.ts'
import { outputOf } from '../support/process.ts'
import { without, withoutCurl } from '../support/programs.ts'
import { startProviderHere } from '../support/provider.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProviderHere(t)
const gateway = await startGateway(t, { providerUrl: provider.url })
const key = gateway.keys.enterprise ?? ''
const folder = t.testdir()

// A place of its own for each reader, so that each meets it for the first time.
const pathsOf = (reader: number): string[] => {
  const place = ['district/3026', 'district/2015', 'division/30', 'division/20', 'division/50'][reader]
  return [
    `/weather/${place}`,
    `/weather/${place}`,
    `/weather/coords/23.${800 + reader}/90.4`,
    `/weather/${place}?lang=en`,
  ].map(path => `${gateway.apiUrl}/api/v1${path}`)
}
const plain = async (url: string): Promise<string> => {
  const { body } = await request(url, { headers: { 'x-api-key': key } })
  return body.text()
}
const run = (...words: string[]): Promise<string> => outputOf(t, words)

const python = `
import sys, urllib.request, zlib
for url in sys.argv[2:]:
    request = urllib.request.Request(url, headers={'x-api-key': sys.argv[1], 'accept-encoding': 'gzip'})
    with urllib.request.urlopen(request) as response:
        assert response.headers['content-encoding'] == 'gzip'
        reader = zlib.decompressobj(31)
        text = b''.join(map(lambda byte: reader.decompress(bytes([byte])), response.read())) + reader.flush()
        assert reader.eof and not reader.unused_data
        sys.stdout.write(text.decode() + '\\n')
`

const java = `
import java.io.*;
import java.net.*;
import java.util.zip.GZIPInputStream;
class Read {
  public static void main(String[] given) throws Exception {
    for (int i = 1; i < given.length; i++) {
      var connection = (HttpURLConnection) URI.create(given[i]).toURL().openConnection();
      connection.setRequestProperty("x-api-key", given[0]);
      connection.setRequestProperty("accept-encoding", "gzip");
      try (var in = new GZIPInputStream(connection.getInputStream(), 7)) {
        in.transferTo(System.out);
        System.out.write('\\n');
      }
    }
    System.out.flush();
  }
}
`

type Reader = { readonly skip: string | false; read(urls: readonly string[]): Promise<string[]> }
const linesOf = (text: string): string[] => text.trimEnd().split('\n')
const readers: Readonly<Record<string, Reader>> = {
  curl: {
    skip: withoutCurl(),
    read: async urls => {
      const each = ['--compressed', '-sS', '--fail', '-w', '\n', '-H', `x-api-key: ${key}`]
      return linesOf(await run('curl', ...each, ...urls))
    },
  },
  Python: {
    skip: without('python3', 'python3', '--version'),
    read: async urls => linesOf(await run('python3', '-c', python, key, ...urls)),
  },
  Java: {
    skip: without('java', 'java', '--version'),
    read: async urls => {
      const file = join(folder, 'Read.java')
      writeFileSync(file, java)
      return linesOf(await run('java', file, key, ...urls))
    },
  },
  Chromium: {
    skip: withoutBrowser,
    read: async urls => {
      const browser = await launchBrowser()
      try {
        const page = await browser.newPage({ extraHTTPHeaders: { 'x-api-key': key } })
        const texts: string[] = []
        for (const url of urls) {
          const response = await page.goto(url)
          if (response?.headers()['content-encoding'] !== 'gzip') throw new Error('no gzip')
          texts.push(await response.text())
        }
        return texts
      } finally {
        await browser.close()
      }
    },
  },
}

for (const [reader, [name, { skip, read }]] of Object.entries(readers).entries())
  t.test(name, { skip }, async t => {
    const urls = pathsOf(reader)
    const texts = await read(urls)
    const expected = await Promise.all(urls.map(plain))
    t.strictSame(texts, expected)
  })
