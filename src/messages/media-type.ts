/** Media types by file extension, as the other library guesses them from a URL. */
const BY_EXTENSION: Record<string, string> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  jpe: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  svg: 'image/svg+xml',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  ico: 'image/vnd.microsoft.icon',
  heic: 'image/heic',
  avif: 'image/avif',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  oga: 'audio/ogg',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
  aiff: 'audio/aiff',
  aac: 'audio/aac',
  opus: 'audio/opus',
  mp4: 'video/mp4',
  mpeg: 'video/mpeg',
  mpg: 'video/mpeg',
  mov: 'video/quicktime',
  webm: 'video/webm',
  mkv: 'video/x-matroska',
  wmv: 'video/x-ms-wmv',
  flv: 'video/x-flv',
  three_gp: 'video/3gpp',
  pdf: 'application/pdf',
  rtf: 'application/rtf',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  ppt: 'application/vnd.ms-powerpoint',
  txt: 'text/plain',
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  html: 'text/html',
  htm: 'text/html',
  css: 'text/css',
  js: 'text/javascript',
  md: 'text/markdown',
  mdx: 'text/markdown',
  asciidoc: 'text/x-asciidoc',
  json: 'application/json',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  toml: 'application/toml',
  zip: 'application/zip',
}

const YOUTUBE = new Set(['youtu.be', 'youtube.com', 'www.youtube.com', 'm.youtube.com'])

/** The media type a path, file name or URL suggests by its extension; null if it suggests none. */
export function guessMediaType(location: string): string | null {
  const path = URL.canParse(location) ? new URL(location).pathname : location
  const dot = path.lastIndexOf('.')
  if (dot <= path.lastIndexOf('/') + 1) return null
  const extension = path.slice(dot + 1).toLowerCase()
  return Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension]! : null
}

/** True for the YouTube hosts that count as `video/mp4` without an extension. */
export const isYoutube = (url: string): boolean => URL.canParse(url) && YOUTUBE.has(new URL(url).hostname)
