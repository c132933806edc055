# SPDX-License-Identifier: BSD-2-Clause
# Where libibverbs looks for .driver files: /etc/libibverbs.d under the prefix /usr, which is what
# GNUInstallDirs says for it with FULL only. Below any other prefix the folder is relative, so that
# `cmake --install --prefix` moves it.
function(uroce_driver_folder result)
  set(prefix ${CMAKE_INSTALL_PREFIX})
  cmake_path(IS_PREFIX prefix ${CMAKE_INSTALL_FULL_SYSCONFDIR} NORMALIZE is_below_prefix)
  if(is_below_prefix)
    set(${result} ${CMAKE_INSTALL_SYSCONFDIR}/libibverbs.d PARENT_SCOPE)
  else()
    set(${result} ${CMAKE_INSTALL_FULL_SYSCONFDIR}/libibverbs.d PARENT_SCOPE)
  endif()
endfunction()
