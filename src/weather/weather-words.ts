// What a WMO code means: a text in both languages, and the name of an icon. Consumers have an image for each icon, so names never change.

import type { WeatherCode } from './ranges.ts'

type Words = {
  readonly en: string
  readonly bn: string
  readonly icon: string
  /** The icon has a sun or a moon in it, and is another one by day than by night. */
  readonly hasSky?: true
}

const words = (en: string, bn: string, icon: string): Words => ({ en, bn, icon })
const underSky = (en: string, bn: string, icon: string): Words => ({ en, bn, icon, hasSky: true })

export const weatherWords: Readonly<Record<WeatherCode, Words>> = {
  0: underSky('Clear sky', 'পরিষ্কার আকাশ', 'clear'),
  1: underSky('Mainly clear', 'প্রায় পরিষ্কার আকাশ', 'mostly-clear'),
  2: underSky('Partly cloudy', 'আংশিক মেঘলা', 'partly-cloudy'),
  3: words('Overcast', 'মেঘাচ্ছন্ন', 'overcast'),
  45: words('Fog', 'কুয়াশা', 'fog'),
  48: words('Depositing rime fog', 'হিমায়িত কুয়াশা', 'fog'),
  51: words('Light drizzle', 'হালকা গুঁড়িগুঁড়ি বৃষ্টি', 'drizzle'),
  53: words('Moderate drizzle', 'মাঝারি গুঁড়িগুঁড়ি বৃষ্টি', 'drizzle'),
  55: words('Dense drizzle', 'ঘন গুঁড়িগুঁড়ি বৃষ্টি', 'drizzle'),
  56: words('Light freezing drizzle', 'হালকা হিমশীতল গুঁড়িগুঁড়ি বৃষ্টি', 'freezing-rain'),
  57: words('Dense freezing drizzle', 'ঘন হিমশীতল গুঁড়িগুঁড়ি বৃষ্টি', 'freezing-rain'),
  61: words('Light rain', 'হালকা বৃষ্টি', 'rain'),
  63: words('Moderate rain', 'মাঝারি বৃষ্টি', 'rain'),
  65: words('Heavy rain', 'ভারী বৃষ্টি', 'heavy-rain'),
  66: words('Light freezing rain', 'হালকা হিমশীতল বৃষ্টি', 'freezing-rain'),
  67: words('Heavy freezing rain', 'ভারী হিমশীতল বৃষ্টি', 'freezing-rain'),
  71: words('Light snowfall', 'হালকা তুষারপাত', 'snow'),
  73: words('Moderate snowfall', 'মাঝারি তুষারপাত', 'snow'),
  75: words('Heavy snowfall', 'ভারী তুষারপাত', 'snow'),
  77: words('Snow grains', 'তুষারকণা', 'snow'),
  80: words('Light showers', 'হালকা পশলা বৃষ্টি', 'showers'),
  81: words('Moderate showers', 'মাঝারি পশলা বৃষ্টি', 'showers'),
  82: words('Violent showers', 'প্রবল পশলা বৃষ্টি', 'heavy-showers'),
  85: words('Light snow showers', 'হালকা পশলা তুষারপাত', 'snow-showers'),
  86: words('Heavy snow showers', 'ভারী পশলা তুষারপাত', 'snow-showers'),
  95: words('Thunderstorm', 'বজ্রঝড়', 'thunderstorm'),
  96: words('Thunderstorm with light hail', 'হালকা শিলাবৃষ্টিসহ বজ্রঝড়', 'thunderstorm-hail'),
  99: words('Thunderstorm with heavy hail', 'ভারী শিলাবৃষ্টিসহ বজ্রঝড়', 'thunderstorm-hail'),
}

/** All names that an icon may have. */
export const icons: readonly string[] = [
  ...new Set(
    Object.values(weatherWords).flatMap(({ icon, hasSky }) =>
      hasSky ? [`${icon}-day`, `${icon}-night`] : [icon],
    ),
  ),
]

type Code = number | null

/** What a code means, in a language; null for a value that the provider does not have. */
export const weatherTextOf = (code: Code, language: 'bn' | 'en'): string | null =>
  weatherWords[code as WeatherCode]?.[language] ?? null

/**
 * The name of the icon for a code.
 * @param isDay 1 by day, 0 by night; undefined for a whole day, whose icon is that of the day; null where it is not known, so that
 * an icon with a sun or a moon is not known either
 */
export const iconOf = (code: Code, isDay: number | null | undefined): string | null => {
  const found = weatherWords[code as WeatherCode]
  if (!found?.hasSky) return found?.icon ?? null
  if (isDay === null) return null
  return `${found.icon}-${isDay === 0 ? 'night' : 'day'}`
}
