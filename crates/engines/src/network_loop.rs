//! Models of several networks, which are computed in a loop. The loops are in `transducer`, `encoder_decoder` and
//! `diffusion`.

use regatta_types::benchmark::{Diffusion, EncoderDecoder, Model, Transducer};

use super::{
    EngineError, LoadRequest, Loaded, diffusion, encoder_decoder, host_network::HostNetworks,
    network_loader::NetworkSource, transducer,
};

/// The loop of a model of several networks.
#[derive(Debug, Clone, Copy)]
pub enum NetworkLoop<'a> {
    /// An encoder, a prediction and a joint network.
    Transducer(&'a Transducer),
    EncoderDecoder(&'a EncoderDecoder),
    Diffusion(&'a Diffusion),
}

impl<'a> NetworkLoop<'a> {
    /// Returns the loop of a model, unless it is one network.
    pub(crate) fn of(model: &'a Model) -> Option<Self> {
        let transducer = model.transducer.as_ref().map(Self::Transducer);
        let encoder_decoder = || model.encoder_decoder.as_ref().map(Self::EncoderDecoder);
        let diffusion = || model.diffusion.as_ref().map(Self::Diffusion);
        transducer.or_else(encoder_decoder).or_else(diffusion)
    }

    /// Loads the networks from `source`, and joins them stream by stream.
    ///
    /// # Errors
    /// [`EngineError`] as that of [`super::load()`].
    pub(crate) fn load<S: NetworkSource>(
        &self,
        request: &LoadRequest<'_>,
        source: &S,
    ) -> Result<Loaded, EngineError> {
        match self {
            Self::Transducer(transducer) => transducer::load(request, transducer, source),
            Self::EncoderDecoder(networks) => encoder_decoder::load(request, networks, source),
            Self::Diffusion(networks) => diffusion::load(request, networks, source),
        }
    }

    /// Loads each network as an engine with `load`, and keeps all states in host memory.
    ///
    /// # Errors
    /// [`EngineError`] as that of [`super::load()`].
    pub(crate) fn load_in_host_memory(
        &self,
        request: &LoadRequest<'_>,
        load: &dyn Fn(&LoadRequest<'_>) -> Result<Loaded, EngineError>,
    ) -> Result<Loaded, EngineError> {
        self.load(request, &HostNetworks { load })
    }
}
