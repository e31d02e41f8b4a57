//! Files in a zip.

use std::io::{self, Read};

/// The only file of an archive, the list of which is at its end.
#[cfg(not(target_family = "wasm"))]
pub(super) fn only_file<'a>(input: impl Read) -> io::Result<Box<dyn Read + 'a>> {
    use super::input::{put_aside, several};
    use flate2::bufread::DeflateDecoder;
    use std::io::{BufReader, Seek, SeekFrom};
    use zip::ZipArchive;

    let mut archive = ZipArchive::new(put_aside(input)?).map_err(io::Error::other)?;
    let mut files = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(io::Error::other)?;
        if !file.is_dir() {
            files.push((index, file.name().map_err(io::Error::other)?.into_owned()));
        }
    }
    let [(index, _)] = files[..] else {
        let names: Vec<String> = files.into_iter().map(|(_, name)| name).collect();
        return Err(several("zip", &names));
    };
    let file = archive.by_index_raw(index).map_err(io::Error::other)?;
    let (method, size, at) = (file.compression(), file.compressed_size(), file.data_start());
    let (encrypted, at) = (file.encrypted(), at.unwrap_or_default());
    drop(file);
    let mut aside = archive.into_inner();
    aside.seek(SeekFrom::Start(at))?;
    let packed = BufReader::with_capacity(1 << 16, aside.take(size));
    match method {
        _ if encrypted => Err(io::Error::other("the zip is encrypted; unpack it")),
        zip::CompressionMethod::Stored => Ok(Box::new(packed)),
        #[allow(deprecated, reason = "the crate's own decoder is not built in")]
        method if method.to_u16() == 8 => Ok(Box::new(DeflateDecoder::new(packed))),
        method => Err(io::Error::other(format!("the zip is packed by {method}; unpack it"))),
    }
}

/// In WebAssembly there is no such archive: there the crate that reads it needs random numbers from
/// JavaScript, and glue for them.
#[cfg(target_family = "wasm")]
pub(super) fn only_file<'a>(_: impl Read) -> io::Result<Box<dyn Read + 'a>> {
    Err(io::Error::other("a zip is not read here; unpack it"))
}
